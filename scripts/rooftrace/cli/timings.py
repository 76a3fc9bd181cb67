"""Where a command's time went, on stderr: a small table, or JSON where the command prints JSON."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooftrace.cli.output import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

_HEADER = ("stage", "wall ms", "CPU ms", "count")


@contextmanager
def timed(options: argparse.Namespace) -> Iterator[None]:
    """Tell of the block's stages once it has ended well, if `--timings` asks for it."""
    if not options.timings:
        yield
        return
    from rooftrace.workflow.timing import clock

    with clock() as running:
        yield
    rows = running.rows()
    if options.json:
        import orjson

        say(orjson.dumps({"timings": rows}).decode())
    else:
        say(table(rows))


def table(rows: Sequence[dict[str, str | float | int]]) -> str:
    """Stages below each other, numbers to the right."""
    texts = [(str(row["stage"]), f"{row['wall_ms']:.1f}", f"{row['cpu_ms']:.1f}", str(row["count"])) for row in rows]
    cells = [_HEADER, *texts]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADER))]
    lines = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in cells
    ]
    return "\n".join(lines)
