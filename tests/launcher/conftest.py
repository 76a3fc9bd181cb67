"""A small pack to launch: the real launcher, one pure-Python dependency from a local wheel, a stub command.

The stub stands for the package and reports what it sees, so that nothing here needs a network or the real
dependencies. A fake ``uv`` makes environments in milliseconds; one of the suite is really built, by pip.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
PYPROJECT = '[project]\nname = "rooftrace"\ndependencies = [\n    "rooftrace-probe>=1.0",\n]\n'
STUB = """
import json, os, sys
BUILD_ONLY = {"subprocess", "tempfile", "shutil", "importlib.metadata"}
def main():
    loaded = sorted(BUILD_ONLY & set(sys.modules))
    try:
        import rooftrace_probe
        probe = rooftrace_probe.VALUE
    except ImportError:
        probe = None
    print(json.dumps({
        "prefix": sys.prefix, "isolated": sys.flags.isolated, "arguments": sys.argv[1:], "probe": probe,
        "bytecode": sys.pycache_prefix,
        "child_no_bytecode": os.environ.get("PYTHONDONTWRITEBYTECODE"),
        "build_only_modules": loaded, "variables": sorted(name for name in os.environ if "ROOFTRACE" in name),
    }))
    return 7
"""
FAKE_UV = """#!/bin/sh
echo "$@" >> "{log}"
case "$1" in
venv) for last; do :; done; mkdir -p "$last/bin" && ln -s "{python}" "$last/bin/python" ;;
pip) exit 0 ;;
esac
"""
BROKEN_UV = "#!/bin/sh\necho 'error: Failed to fetch' >&2\nexit 2\n"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one launch gave."""

    code: int
    out: str
    err: str

    @property
    def seen(self) -> dict[str, object]:
        """The stub's report."""
        return json.loads(self.out)


@dataclass(frozen=True, kw_only=True)
class Pack:
    """A pack folder and how it is launched."""

    root: Path
    cache: Path
    path: Path  # the only folder on PATH
    wheels: Path

    @property
    def launcher(self) -> Path:
        return self.root / "scripts" / "rooftrace.py"

    def popen(self, *arguments: str, flags: tuple[str, ...] = (), **variables: str) -> subprocess.Popen[str]:
        """Start the launcher in a clean environment."""
        environment = {
            "PATH": str(self.path),
            "HOME": str(self.path),
            "ROOFTRACE_CACHE": str(self.cache),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": self.wheels.as_uri(),
            **variables,
        }
        return subprocess.Popen(
            [sys.executable, *flags, str(self.launcher), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, flags: tuple[str, ...] = (), **variables: str) -> Outcome:
        """Launch and wait."""
        return finish(self.popen(*arguments, flags=flags, **variables))

    def environment(self) -> Path:
        """The folder of the environment for these requirements and the running Python, made if need be."""
        return Path(self.run("setup").out.strip())


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for a launch."""
    out, err = process.communicate(timeout=120)
    return Outcome(code=process.returncode, out=out, err=err)


def load(name: str) -> ModuleType:
    """A module of ``scripts``, by its file: the launcher bears the package's name, so no import finds it."""
    spec = importlib.util.spec_from_file_location(f"loaded_{Path(name).name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_program(path: Path, text: str) -> None:
    """An executable file."""
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def make_wheel(folder: Path) -> None:
    """A wheel of one module, ``rooftrace_probe``, with ``VALUE = 42``."""
    info = "rooftrace_probe-1.0.dist-info"
    files = {
        "rooftrace_probe.py": "VALUE = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: rooftrace-probe\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with ZipFile(folder / "rooftrace_probe-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)


def make_pack(base: Path) -> Pack:
    """A pack in a folder with a space, with an empty cache and nothing on PATH."""
    pack = Pack(root=base / "a pack", cache=base / "the cache", path=base / "bin", wheels=base / "wheels")
    package = pack.root / "scripts" / "rooftrace"
    package.mkdir(parents=True)
    pack.path.mkdir()
    pack.wheels.mkdir()
    shutil.copy(SCRIPTS / "rooftrace.py", pack.launcher)
    without_bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SCRIPTS / "rooftrace_launch", pack.root / "scripts" / "rooftrace_launch", ignore=without_bytecode)
    (pack.root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "cli.py").write_text(STUB, encoding="utf-8")
    make_wheel(pack.wheels)
    return pack


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """A pack whose environments a fake ``uv`` makes in milliseconds; its calls are in ``bin/log``."""
    made = make_pack(tmp_path)
    # dirname, mkdir and ln are the shell script's; nothing else is on PATH
    for tool in ("mkdir", "ln", "sh"):
        (made.path / tool).symlink_to(str(shutil.which(tool)))
    write_program(made.path / "uv", FAKE_UV.format(log=made.path / "log", python=sys.executable))
    return made


@pytest.fixture(scope="session")
def first_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pack, Outcome, Outcome]:
    """A pack without uv, and the outcomes of two first runs started at once: one real build by pip."""
    made = make_pack(tmp_path_factory.mktemp("built"))
    both = [made.popen("analyze", "a b.json"), made.popen("analyze", "c.json", flags=("-I",))]
    first, second = (finish(process) for process in both)
    return made, first, second
