"""``python -m evals.workshop.pairs FOLDER``: writes every pair of the corpus as two traces."""

from __future__ import annotations

import argparse
from pathlib import Path

from evals.workshop.kineto import write_trace
from evals.workshop.pairs.cases import corpus


def main() -> None:
    """Writes the corpus and prints one line a pair."""
    parser = argparse.ArgumentParser(prog="python -m evals.workshop.pairs", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for case in corpus():
        name = "".join(sign if sign.isalnum() else "_" for sign in case.name)
        for side, text in zip(("base", "target"), case.traces(), strict=True):
            write_trace(folder / f"{name}_{side}.json.gz", text)
        print(f"{name}: {', '.join(case.causes)}")


if __name__ == "__main__":
    main()
