"""What tells whose a trace is, and what only seems to: the keys of a header, and words that anybody might use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The key under which a reader keeps what a header says of persons and machines, and nothing else of that.
KEY = "identities"
# By which a text is known to hold a user's folder.
HOME_MARKS = (
    "/home",
    "Users",
    "users",
    "Documents and Settings",
    "documents and settings",
    "\\home",
    "/root",
    "torchinductor_",
)
# Below these lie packages, whose folders are no users'.
INSTALLED = frozenset(("site-packages", "dist-packages", "lib", "lib64", "Lib", "torch", "node_modules"))
_KIND_OF_KEY = {
    **dict.fromkeys(("user", "username", "user_name", "login", "logname", "owner", "author"), "user"),
    **dict.fromkeys(
        ("host", "hostname", "host_name", "node", "nodename", "node_name", "machine", "machine_name"), "host"
    ),
    **dict.fromkeys(("fqdn", "computername", "computer_name", "master_addr", "slurmd_nodename"), "host"),
    **dict.fromkeys(("slurm_nodelist", "slurm_job_nodelist", "pod_name"), "host"),
    **dict.fromkeys(("slurm_job_user", "slurm_job_account"), "user"),
    **dict.fromkeys(("job", "jobname", "job_name", "slurm_job_name", "run_name", "experiment_name"), "job"),
    **dict.fromkeys(("home", "userprofile"), "home"),
    "tracename": "path",
}
# Users of images and services, and words that name no person: nothing tells them apart in another path.
_NO_PERSON = frozenset(
    (
        *(
            "user",
            "users",
            "ubuntu",
            "root",
            "admin",
            "administrator",
            "runner",
            "jovyan",
            "ec2-user",
            "centos",
            "debian",
        ),
        *("nobody", "docker", "app", "default", "public", "work", "workspace", "workspaces", "test", "tester", "dev"),
        *("developer", "build", "builder", "home", "tmp", "src", "data", "torch", "python", "model", "models", "train"),
        *("training", "triton", "transformers", "vllm", "sglang", "megatron", "deepspeed", "nvidia", "cuda", "amd"),
        *("rocm", "lib", "bin", "usr", "opt", "conda", "shared", "all"),
    )
)
# Parts of the names that programs give their workers and traces.
_COMMON = frozenset(
    (
        *(
            "worker",
            "rank",
            "step",
            "trace",
            "traces",
            "gpu",
            "cpu",
            "cuda",
            "host",
            "localhost",
            "tp",
            "dp",
            "pp",
            "ep",
        ),
        *("cp", "sp", "epoch", "train", "training", "eval", "decode", "prefill", "iter", "iteration", "profile"),
        *("profiler", "dev", "device", "stream", "run", "inference", "serving", "test", "of", "global", "local"),
        "process",
    )
)
_LETTERS = re.compile("[A-Za-z]+")
_MOST_VALUES = 100_000


def kind_of_key(key: str) -> str:
    """`user`, `host`, `job`, `home` or `path` if the key of a header names one; else empty."""
    return _KIND_OF_KEY.get(key.lower(), "")


def named_values(header: object) -> Iterator[tuple[str, str]]:
    """Kind and text of the values whose key names one, at any depth, in the header's order."""
    waiting = [("", header)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += reversed([(str(name), inner) for name, inner in value.items()])
        elif isinstance(value, list):
            waiting += reversed([(key, inner) for inner in value])
        elif isinstance(value, str) and value and kind_of_key(key):
            yield kind_of_key(key), value


def by_kind(header: object) -> dict[str, list[str]]:
    """The values that `named_values` finds, by kind, each once; the result names them as the header did."""
    found: dict[str, list[str]] = {}
    for kind, value in named_values(header):
        if kind != "path" and value not in found.setdefault(kind, []):
            found[kind].append(value)
    return found


def is_version(key: str) -> bool:
    """Whether the key of a header names a version, which looks like an address."""
    return "version" in key.lower()


def is_telling_user(name: str) -> bool:
    """Whether a user's name can be one person's."""
    return len(name) > 1 and name.lower() not in _NO_PERSON and not name.isdecimal()


def is_common(name: str) -> bool:
    """Whether all words of a name are those that programs give."""
    return all(word.lower() in _COMMON for word in _LETTERS.findall(name))


def is_telling_word(name: str) -> bool:
    """Whether a host's or a job's name stands for it wherever it is read, as no kernel would bear it."""
    has_mark = any(sign.isdecimal() or sign in "-." for sign in name)
    return len(name) > 3 and has_mark and not is_common(name)


def is_private(ip: Sequence[int]) -> bool:
    """Whether an IPv4 address is one of a private network."""
    first, second = ip[0], ip[1]
    return (
        first == 10
        or (first, second) in ((192, 168), (169, 254))
        or (first == 172 and 16 <= second < 32)
        or (first == 100 and 64 <= second < 128)
    )
