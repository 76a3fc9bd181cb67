"""``python -m rooftrace``: the same commands as the launcher."""

from __future__ import annotations

import sys

from rooftrace.cli import main

if __name__ == "__main__":
    sys.exit(main())
