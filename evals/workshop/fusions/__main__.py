"""``python -m evals.workshop.fusions FOLDER``: write the planted traces with their truth beside them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from evals.workshop.fusions.corpus import cases, planted


def main(folder: Path) -> None:
    """Write ``<name>.json`` and ``<name>.truth.json`` for every trace."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in cases():
        made = planted(one)
        truth = {"family": one.family, "platform": made.platform, "instances": [asdict(i) for i in made.instances]}
        (folder / f"{one.name}.json").write_bytes(made.trace)
        (folder / f"{one.name}.truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {len(cases())} traces to {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m evals.workshop.fusions FOLDER")
    main(Path(sys.argv[1]))
