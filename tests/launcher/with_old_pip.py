"""The launcher on a Python whose ``ensurepip`` brings an old pip: ``python3 tests/launcher/with_old_pip.py 20.2``.

Needs the network, so it is no test of the suite. Exit code: that of the launcher.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LAUNCHER = Path(__file__).resolve().parents[2] / "scripts" / "rooftrace.py"
# Stands for the interpreter's own module: found first, by the launcher and by `venv`, which starts it with `-m`.
ENSUREPIP = """
import sys
VERSION, WHEEL = {version!r}, {wheel!r}
def version():
    return VERSION
def bootstrap(**options):
    sys.path.insert(0, WHEEL)
    from pip._internal.cli.main import main
    return main(["install", "--quiet", "--no-index", "--no-deps", WHEEL])
"""


def main(version: str) -> int:
    """Make the environment, then run a command in it."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "python"
        shutil.copytree(sys.base_prefix, python, symlinks=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, f"pip=={version}"]
        subprocess.run(pip, check=True)
        wheel = next(Path(folder).glob("pip-*.whl"))
        library = python / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        (library / "ensurepip" / "__init__.py").write_text(
            ENSUREPIP.format(version=version, wheel=str(wheel)), encoding="utf-8"
        )
        (library / "ensurepip" / "__main__.py").write_text(
            "import ensurepip, sys\nsys.exit(ensurepip.bootstrap())\n", encoding="utf-8"
        )
        variables = {**os.environ, "ROOFTRACE_CACHE": str(Path(folder) / "cache")}
        command = [str(python / "bin" / "python3"), "-I", str(LAUNCHER), "platforms"]
        return subprocess.run(command, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
