"""Names of copies and memsets."""

from __future__ import annotations

import pytest

from rooftrace.kernelnames import CopyFacts, describe_copy

COPIES: list[tuple[str, str | None, str | None, str | None]] = [
    ("Memcpy HtoD (Pageable -> Device)", "HtoD", "pageable", "device"),
    ("Memcpy DtoH (Device -> Pinned)", "DtoH", "device", "pinned"),
    ("Memcpy DtoD (Device -> Device)", "DtoD", "device", "device"),
    ("Memcpy PtoP (Device -> Device)", "PtoP", "device", "device"),
    ("Memcpy HtoD (Host -> Device)", "HtoD", "host", "device"),
    ("Memcpy HtoH (Pinned -> Pageable)", "HtoH", "pinned", "pageable"),
    ("Memcpy HtoD (Unknown -> Device)", "HtoD", None, "device"),
    ("Memcpy HtoD", "HtoD", None, None),
    ("Memset (Device)", "memset", None, "device"),
    ("Memset (Unknown)", "memset", None, None),
    ("Memset", "memset", None, None),
    ("MEMORY_COPY_HOST_TO_DEVICE", "HtoD", "host", "device"),
    ("MEMORY_COPY_DEVICE_TO_DEVICE", "DtoD", "device", "device"),
    ("CopyHostToDevice", "HtoD", "host", "device"),
    ("CopyDeviceToHost", "DtoH", "device", "host"),
    ("something else", None, None, None),
    ("", None, None, None),
]


@pytest.mark.parametrize(("name", "direction", "source", "destination"), COPIES)
def test_a_copy_names_its_ends(name, direction, source, destination):
    assert describe_copy(name) == CopyFacts(direction=direction, source=source, destination=destination)
