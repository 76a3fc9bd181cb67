# ruff: noqa: S108 - names of folders are data here
"""What tells whose a trace is goes, by one placeholder a value; what only looks like it stays."""

from __future__ import annotations

import pytest

from rooftrace.contracts.redaction import PLACEHOLDER, Redactor

HEADER = {
    "host_name": "node17.cluster.example.com",
    "username": "ada",
    "traceName": "/home/ada/runs/gpu-box-3_991.1700000000123.pt.trace.json",
    "metadata": {"env": {"HOME": "/opt/people/ada", "SLURM_JOB_NAME": "llm-pretrain-7b", "cudnn_version": "10.9.0.58"}},
}


@pytest.fixture
def redactor() -> Redactor:
    known = Redactor()
    known.learn_header(HEADER)
    return known


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/grace/train.py(12): forward", "~/train.py(12): forward"),
        ("/Users/grace/train.py(12): forward", "~/train.py(12): forward"),
        (r"C:\Users\Grace Hopper\work\train.py(3): main", r"~\work\train.py(3): main"),
        (r"C:\\Users\\grace\\train.py", r"~\\train.py"),
        (r"D:\Documents and Settings\grace\train.py", r"~\train.py"),
        (r"\\filer\home\grace\train.py", r"~\train.py"),
        ("/mnt/nfs/home/grace/train.py(1): f", "~/train.py(1): f"),
        ("/data/users/grace/fbsource/train.py(1): f", "~/fbsource/train.py(1): f"),
        ("/global/homes/g/grace/train.py(1): f", "~/train.py(1): f"),
        ("file:///home/grace/train.py", "file://~/train.py"),
        ("/root/.cache/huggingface/modeling.py(1): f", "~/.cache/huggingface/modeling.py(1): f"),
        ("/opt/people/ada/train.py(1): f", "~/train.py(1): f"),  # a home that only HOME tells
        ("/home/grace", "~"),
        ("read '/home/grace/a.bin' (4 KB)", "read '~/a.bin' (4 KB)"),
    ],
)
def test_a_home_folder_is_a_tilde_whatever_system_wrote_it(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/scratch/ada/run/train.py(1): f", "/scratch/<user>/run/train.py(1): f"),
        ("/data/ada-exp3/train.py(1): f", "/data/<user>-exp3/train.py(1): f"),
        ("/var/tmp/torchinductor_ada/ab/cabc.py(3): call", "/var/tmp/torchinductor_<user>/ab/cabc.py(3): call"),
        ("projects/ada/train.py(3): f", "projects/<user>/train.py(3): f"),
        ("https://ada:secret@git.example/x", "https://<user2>@git.example/x"),
        ("mail ada.l@corp.co.uk now.", "mail <email> now."),
        ("rank 3 on node17.cluster.example.com", "rank 3 on <host>"),
        ("rank 3 on node17", "rank 3 on <host>"),
        ("ip-10-0-0-1.ec2.internal", "<host3>"),
        ("Graces-MacBook-Pro.local", "<host3>"),
        ("job llm-pretrain-7b, attempt 2", "job <job>, attempt 2"),
        ("tcp://203.0.113.7:29500", "tcp://<ip>:29500"),
        ("store 192.168.4.20", "store <ip>"),
        ("fe80::1ff:fe23:4567:890a", "<ip>"),
    ],
)
def test_users_hosts_jobs_and_addresses_have_a_placeholder(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "void kernel<float, 4>(float*, ada)",
        "_Z6kernelPf",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
        "jit(train)/transformer/ada/dot_general",  # a scope, no path: nothing of it is a file
        "nn.Module: ada_0",
        "ada",
        "torch/nn/modules/module.py(1501): _call_impl",
        "/usr/lib/python3/site-packages/ada/layers.py(1): f",
        "memcpy@GLIBC_2.14",
        "cudaLaunchKernel@libcudart.so.12",
        "nvidia-curand-cu12==10.3.9.90",
        "12.8.4.1",
        "9.1.0.70",
        "10.0.0.999",
        "127.0.0.1",
        "thread.local",
        "threading.py(12): local",
        "at::native::fe80::x",
        "/homestead/x.py(1): f",
        "/home",
        "user_home/x",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_cga1x1x1",
        "Memcpy HtoD (Pinned -> Device)",
        "ProfilerStep#17",
        "",
    ],
)
def test_what_only_looks_like_it_stays(redactor: Redactor, text: str) -> None:
    assert redactor.text(text) == text


def test_a_user_called_like_a_common_word_takes_no_kernel_along() -> None:
    known = Redactor()
    known.learn_header({"username": "kernel", "host_name": "training"})

    assert known.text("/home/kernel/a.py(1): f") == "~/a.py(1): f"
    assert known.text("/scratch/kernel/a.py(1): f") == "/scratch/<user>/a.py(1): f"
    assert known.text("void reduce_kernel<512>(kernel)") == "void reduce_kernel<512>(kernel)"
    assert known.text("training step") == "training step"
    assert known.value({"host_name": "training", "username": "kernel"}) == {"host_name": "<host>", "username": "<user>"}


@pytest.mark.parametrize("name", ["user", "ubuntu", "root", "torch", "runner"])
def test_users_that_are_nobody_lose_their_home_and_nothing_else(name: str) -> None:
    known = Redactor()

    assert known.text(f"/home/{name}/a.py(1): f") == "~/a.py(1): f"
    assert known.text(f"/opt/{name}/lib/a.py(1): f") == f"/opt/{name}/lib/a.py(1): f"


def test_equal_values_have_one_placeholder_and_others_another() -> None:
    known = Redactor()
    texts = ["/home/ada/a.py", "/home/grace/a.py", "/home/ada/b.py", "/Users/ada/a.py"]

    assert [known.text(text) for text in texts] == ["~/a.py", "~2/a.py", "~/b.py", "~3/a.py"]


def test_what_is_redacted_stays_as_it_is(redactor: Redactor) -> None:
    texts = ["/home/ada/ada/a.py(1): f", "/var/tmp/torchinductor_ada/x.py(1): g", "node17", "a@b.org", "10.0.0.1:80"]
    once = [redactor.text(text) for text in texts]

    assert [redactor.text(text) for text in once] == once


def test_a_name_that_was_cut_for_a_table_has_the_placeholder_of_the_whole() -> None:
    known = Redactor()
    known.text("/home/alexandra/proj/train.py(1): f")

    assert known.text("/home/alexan…") == "~"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpu-box-3_991.1700000000123.pt.trace.json", "<host2>_991.1700000000123.pt.trace.json"),
        ("worker0_step_12.1694128201545.pt.trace.json", "worker0_step_12.1694128201545.pt.trace.json"),
        ("node-7-rank3_44.1694128201545.pt.trace.json.gz", "<host3>-rank3_44.1694128201545.pt.trace.json.gz"),
        ("trace_ada.json", "trace_<user>.json"),
        ("trace.json", "trace.json"),
    ],
)
def test_a_files_name_loses_the_host_that_profilers_put_first(redactor: Redactor, name: str, expected: str) -> None:
    """The host of the header is the first, that of the trace's own name the second."""
    assert redactor.file_name(name) == expected


def test_a_header_loses_its_values_by_key_and_keeps_versions_and_numbers(redactor: Redactor) -> None:
    assert redactor.value(HEADER | {"world_size": 8, "ranks": ["/home/ada/x", 3]}) == {
        "host_name": "<host>",
        "username": "<user>",
        "traceName": "~/runs/<host2>_991.1700000000123.pt.trace.json",
        "metadata": {"env": {"HOME": "~2", "SLURM_JOB_NAME": "<job>", "cudnn_version": "10.9.0.58"}},
        "world_size": 8,
        "ranks": ["~/x", 3],
    }


def test_a_placeholder_is_recognised_in_a_name() -> None:
    assert PLACEHOLDER.split("~2/a/<user>/b.py(1): f") == ["", "/a/", "/b.py(1): f"]
    assert PLACEHOLDER.search("operator~ <int>") is None
