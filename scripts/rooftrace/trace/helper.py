"""The program of a process that reads stretches of a file and writes what it read, pickled, to its output.

Started by `stretches`, with its job as an argument in JSON: the caller's module path, the file, where the stretches
meet, which to read, and where to take others when it is read.
"""

import gc
import json
import pickle
import sys


def main() -> None:
    """Read the stretch, and others."""
    gc.disable()  # few cycles, millions of records; the process ends with its answer
    sys.path[:], path, places, number, tokens = json.loads(sys.argv[1])
    from pathlib import Path

    from rooftrace.heap import keep_freed_memory

    keep_freed_memory()
    from rooftrace.trace.fast import read_stretches

    states = read_stretches(Path(path), places, number, tokens)
    pickle.dump(states, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
