"""The program of a process that reads one stretch of a file and writes what it read, pickled, to its output.

Started by `parallel`, with its job as an argument in JSON: the caller's module path, the file, where the stretches
meet, and which to read.
"""

import gc
import json
import pickle
import sys


def main() -> None:
    """Read the stretch."""
    gc.disable()  # few cycles, millions of records; the process ends with its answer
    sys.path[:], path, places, number = json.loads(sys.argv[1])
    from pathlib import Path

    from rooftrace.heap import keep_freed_memory

    keep_freed_memory()
    from rooftrace.trace.fast import read_stretch

    state = read_stretch(Path(path), places, number)
    pickle.dump(state, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
