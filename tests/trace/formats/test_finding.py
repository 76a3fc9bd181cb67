"""A file is of one format at most, and formats are found by their folder."""

from __future__ import annotations

import json

import pytest

from rooftrace.trace import formats
from rooftrace.trace.containers import open_source
from tests.fuzz.seeds import seeds
from tests.trace.formats.test_legacy_autograd import EVENTS
from tests.trace.reading import Folder

FORMAT_OF = {
    "rocprofv3": "rocprofv3",
    "nsys_json": "Nsight Systems JSON",
    "nsys_sqlite": "Nsight Systems SQLite",
    "xla_chrome": "XLA Chrome trace",
    "xplane": "XPlane",
    "roctracer": "Chrome trace",
    "halves": "Chrome trace",
}


def test_every_module_of_the_folder_is_a_format() -> None:
    assert sorted(form.NAME for form in formats.formats()) == [
        "Chrome trace",
        "Nsight Systems JSON",
        "Nsight Systems SQLite",
        "XLA Chrome trace",
        "XPlane",
        "legacy autograd",
        "rocprofv3",
    ]


@pytest.mark.parametrize("seed", sorted(seeds()))
def test_a_file_is_of_one_format_or_of_kineto(folder: Folder, seed: str) -> None:
    head = formats.head_of(open_source(folder.write(seeds()[seed])))

    recognised = [form.NAME for form in formats.formats() if form.recognises(head)]
    assert recognised == ([FORMAT_OF[seed]] if seed in FORMAT_OF else [])


def test_a_legacy_trace_is_of_no_other_format() -> None:
    head = json.dumps(EVENTS).encode()

    assert [form.NAME for form in formats.formats() if form.recognises(head)] == ["legacy autograd"]


def test_looking_at_a_file_leaves_its_source_as_it_was(folder: Folder) -> None:
    source = open_source(folder.write(seeds()["compressed"]))
    first = formats.head_of(source)

    assert (source.container, source.content_bytes, source.truncated) == ([], 0, None)
    assert b"".join(source.chunks()).startswith(first)
    assert source.container == ["gzip"]
