from __future__ import annotations

import shlex

import pytest

from rooftrace.report.assemble import assemble
from rooftrace.report.commands import base_name, profile_commands
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
