"""Places and streams that a caller may have: names of folders, homes, closed streams; it works or says what helps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.launcher.conftest import Pack, finish

posix = pytest.mark.skipif(os.name != "posix", reason="names, streams and users as POSIX has them")
OTHER_FOLDER = "hint: Set ROOFTRACE_CACHE to a folder that can be written, or run `python3 "


def shell(pack: Pack, arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The launcher by a shell, which can close streams."""
    environment = {"PATH": str(pack.path), "HOME": str(pack.path), "ROOFTRACE_CACHE": str(pack.cache), **variables}
    command = f'"$0" "$1" {arguments}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(pack.launcher)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@posix
@pytest.mark.parametrize(
    "name", ["a\nb", "-dash", 'quote\'s "two"', "训练 é", "$HOME `x` %PATH%", os.fsdecode(b"\xff\xfe")], ids=ascii
)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_pack_and_cache_may_lie_in_a_folder_of_any_name(pack: Pack, name: str, locale: str) -> None:
    if sys.platform != "linux" and "\udcff" in name:
        pytest.skip("other systems refuse file names that are not UTF-8")
    root = pack.root.parent / name
    shutil.copytree(pack.root, root)
    moved = Pack(root=root, cache=root / "cache", path=pack.path, wheels=pack.wheels)

    first = moved.run("x y", LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    setup = subprocess.run(
        [sys.executable, str(moved.launcher), "setup"],
        env={"ROOFTRACE_CACHE": str(moved.cache), "LC_ALL": locale, "PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
        check=False,
    )

    assert (first.code, first.seen["arguments"]) == (7, ["x y"])
    assert (setup.returncode, setup.stderr) == (0, b"")
    assert Path(os.fsdecode(setup.stdout.removesuffix(b"\n"))).parent == moved.cache


@posix
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_closed_stream_is_no_hindrance(pack: Pack, closed: str) -> None:
    made, again, refused = (
        shell(pack, f"setup {closed}"),
        shell(pack, f"x {closed}"),
        shell(pack, f"x {closed}", ROOFTRACE_CACHE="/dev/null/x"),
    )

    assert (made.returncode, refused.returncode) == (0, 69)
    assert again.returncode == 7
    assert "Traceback" not in made.stderr + again.stderr + refused.stderr


@posix
def test_a_reader_that_stops_early_is_no_error(pack: Pack) -> None:
    process = pack.popen("setup")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None

    assert finish(process).code == 0


@posix
@pytest.mark.parametrize(
    ("variables", "what"),
    [
        (
            {"ROOFTRACE_CACHE": "", "XDG_CACHE_HOME": "/dev/null"},
            "cannot write in `/dev/null/rooftrace`: Not a directory",
        ),
        ({"ROOFTRACE_CACHE": "", "HOME": "/dev/null"}, "cannot write in `/dev/null/.cache/rooftrace`: Not a directory"),
        ({"ROOFTRACE_CACHE": "", "HOME": ""}, "there is no home folder to keep the environment in"),
        ({"ROOFTRACE_CACHE": "", "HOME": "here"}, "there is no home folder to keep the environment in"),
    ],
    ids=["XDG_CACHE_HOME is a file", "HOME is a file", "no HOME", "HOME is relative"],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="its caches lie elsewhere")
def test_a_place_that_cannot_be_written_is_told_with_what_helps(
    pack: Pack, variables: dict[str, str], what: str
) -> None:
    outcome = pack.run("x", **variables)

    assert (outcome.code, outcome.out) == (69, "")
    assert outcome.err.startswith(f"error: {what}\n\n{OTHER_FOLDER}")
    assert outcome.err.count("\n") == 3


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_a_home_that_is_closed_to_the_user_is_told_with_what_helps(pack: Pack) -> None:
    if shutil.which("setpriv") is None or not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("no setpriv, or no Python that every user may start")
    shared = Path(tempfile.mkdtemp(prefix="rooftrace-"))  # others may not enter the tests' own folders
    shared.chmod(0o755)
    launcher = Path(shutil.copytree(pack.root, shared / "pack")) / "scripts" / "rooftrace.py"
    closed = shared / "closed"
    (closed / ".cache/rooftrace").mkdir(parents=True)
    closed.chmod(0o700)
    done = subprocess.run(
        [
            *(str(shutil.which("setpriv")), "--reuid=65534", "--regid=65534", "--clear-groups"),
            *("/usr/bin/python3", "-I", "-S", str(launcher), "x"),
        ],
        env={"HOME": str(closed), "PATH": str(pack.path)},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )

    shutil.rmtree(shared)
    if "needs Python 3.10" in done.stderr:
        pytest.skip("the system's Python is old")
    assert done.returncode == 69, done.stderr
    assert done.stderr.startswith(
        f"error: cannot write in `{closed}/.cache/rooftrace`: Permission denied\n\n{OTHER_FOLDER}"
    )


@posix
def test_a_working_folder_that_was_deleted_is_no_hindrance(pack: Pack, tmp_path: Path) -> None:
    def launch(cache: str) -> subprocess.CompletedProcess[str]:
        gone = tmp_path / "gone"
        gone.mkdir()
        return subprocess.run(
            ["/bin/sh", "-c", f'cd "{gone}" && /bin/rmdir "{gone}" && "$0" "$1" x', sys.executable, str(pack.launcher)],
            env={"PATH": str(pack.path), "HOME": str(pack.path), "ROOFTRACE_CACHE": cache},
            capture_output=True,
            text=True,
            check=False,
        )

    assert launch(str(pack.cache)).returncode == 7
    relative = launch("cache")
    assert (relative.returncode, "Traceback" in relative.stderr) == (69, False)
    assert relative.stderr.startswith("error: cannot write in `cache`: No such file or directory\n")


@posix
def test_installers_have_a_folder_for_temporary_files_and_no_variable_meant_for_another_python(pack: Pack) -> None:
    uv = pack.path / "uv"
    text = uv.read_text(encoding="utf-8").replace(
        "#!/bin/sh\n", '#!/bin/sh\n[ -d "$TMPDIR" ] && [ -z "$PYTHONWARNINGS" ] || exit 3\n'
    )
    uv.write_text(text, encoding="utf-8")

    outcome = pack.run("x", TMPDIR="/nowhere", PYTHONWARNINGS="error", PYTHONHOME="")

    assert outcome.code == 7


@posix
def test_the_users_mask_decides_who_may_read_the_environment(pack: Pack) -> None:
    before = os.umask(0o077)
    try:
        outcome = pack.run("x")
    finally:
        os.umask(before)

    assert outcome.code == 7
    assert pack.cache.stat().st_mode & 0o777 == 0o700
