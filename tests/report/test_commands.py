from __future__ import annotations

import shlex

import pytest

from rooftrace.report.assemble import assemble
from rooftrace.report.commands import base_name, own_prefix, profile_commands
from rooftrace.report.view import open_view
from tests.report.sample import gpu_files, write_files
from tests.report.sample_names import ADD_KERNEL


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("nvjet_tst_128x256_64x4_1x2_h_bz_TNT", "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"),
        (ADD_KERNEL, "vectorized_elementwise_kernel"),
        ("void (anonymous namespace)::softmax_warp_forward<float>(float*)", "softmax_warp_forward"),
        ("flash::flash_fwd_kernel<Traits<64>>(Params)", "flash_fwd_kernel"),
        ("kernel; rm -rf /", None),
        ("$(reboot)", None),
        ("a b c", None),
        ("", None),
    ],
)
def test_the_name_to_profile_is_a_plain_identifier_or_none(kernel, name):
    assert base_name(kernel) == name


def test_commands_select_the_heaviest_compute_kernels_of_the_vendor(tmp_path):
    run = write_files(tmp_path, gpu_files())

    commands = profile_commands(open_view(run, assemble(run)))

    assert [(command.tool, command.is_exact) for command in commands] == [
        ("Nsight Compute", True),
        ("Nsight Compute", False),  # a template: all its instantiations
        ("Nsight Compute", True),
    ]
    words = shlex.split(commands[0].text)
    assert words[words.index("--kernel-name") + 1] == "regex:^nvjet_tst_128x256_64x4_1x2_h_bz_TNT$"


def test_an_amd_gpu_gets_the_tool_of_its_vendor(tmp_path):
    files = gpu_files()
    files["manifest.json"]["platform"]["product"] = "AMD Instinct MI300X"
    run = write_files(tmp_path, files)

    assert {command.tool for command in profile_commands(open_view(run, assemble(run)))} == {"rocprof-compute"}


def test_a_long_name_is_selected_by_a_beginning_that_no_other_kernel_has(tmp_path):
    files = gpu_files()
    files["manifest.json"]["platform"]["product"] = "AMD Instinct MI300X"
    same = "Cijk_" + "x" * 110
    rows = files["evidence/kernels.csv"]
    rows[0]["kernel"], rows[3]["kernel"] = same + "_MT256" + "_y" * 100, same + "_MT128" + "_y" * 100
    run = write_files(tmp_path, files)

    first, _, other = profile_commands(open_view(run, assemble(run)))

    # 5 + 110 characters are shared, `_MT` as well: of 100, 108, 116, 124 the last is the first to differ
    words = shlex.split(first.text)
    assert words[words.index("--kernel") + 1] == same + "_MT256_y_" + ".*"
    assert (first.is_exact, other.is_exact) == (True, True)


def test_a_mangled_kernel_is_selected_by_its_readable_name(tmp_path):
    files = gpu_files()
    files["evidence/kernels.csv"][0].update(kernel="_ZN2ck12kernel_batchILi4EEEvi", short="ck::kernel_batch<4>")
    run = write_files(tmp_path, files)

    words = shlex.split(profile_commands(open_view(run, assemble(run)))[0].text)

    assert words[words.index("--kernel-name") + 1] == "regex:^kernel_batch$"


def test_names_that_differ_only_far_behind_share_a_beginning():
    name = "k" * 400

    assert own_prefix(name + "a", [name + "a", name + "b"]) == "k" * 300


@pytest.mark.parametrize(
    ("launches", "skip", "count"), [(1, "0", "1"), (2, "1", "1"), (4, "2", "2"), (20, "10", "3"), (900, "10", "3")]
)
def test_counters_are_read_within_the_launches_there_are(tmp_path, launches, skip, count):
    files = gpu_files()
    files["evidence/kernels.csv"][0]["count"] = launches
    run = write_files(tmp_path, files)

    words = shlex.split(profile_commands(open_view(run, assemble(run)))[0].text)

    assert words[words.index("--launch-skip") + 1] == skip
    assert words[words.index("--launch-count") + 1] == count


def test_the_least_efficient_heavy_op_has_a_command_whatever_its_rank(tmp_path):
    files = gpu_files()
    # Four functions of one name and the slow one behind them: 0.3 of 6 ms is 5 % of the op time, more than 2 %.
    kinds = [
        f"void cutlass::Kernel2<cutlass_80_tensorop_gemm_{size}>(Params)" for size in ("64x64", "128x64", "256x64")
    ]
    slow = "void cutlass::Kernel2<cutlass_tensorop_fprop_optimized_256x64>(Params)"
    rows = files["evidence/kernels.csv"]
    files["evidence/kernels.csv"] = [{**rows[0], "kernel": kind, "short": kind} for kind in kinds]
    files["evidence/kernels.csv"] += [{**rows[0], "kernel": slow, "short": slow, "count": 1, "total_ns": 300_000}]
    first, *others = files["evidence/ops.csv"]
    slow_kernel = {"name": slow, "count": 1, "ns": 300_000, "library": "cuDNN"}
    convolution = {**first, "id": "op9", "kernel_ns": 300_000, "efficiency_pct": 1.2, "kernels": [slow_kernel]}
    files["evidence/ops.csv"] = [first, *others, convolution]
    run = write_files(tmp_path, files)

    commands = profile_commands(open_view(run, assemble(run)))

    assert [(command.is_exact, command.least_pct) for command in commands] == [(True, None)] * 3 + [(True, 1.2)]
    words = shlex.split(commands[-1].text)
    assert words[words.index("--kernel-name-base") + 1] == "demangled"
    assert words[words.index("--kernel-name") + 1] == "regex:cutlass_tensorop_fprop_optimized_256x64"
    assert words[words.index("--launch-skip") + 1] == "0"  # it runs once
