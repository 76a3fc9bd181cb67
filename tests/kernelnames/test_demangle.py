"""The demangler, against names whose readable form is known from the Itanium C++ ABI."""

from __future__ import annotations

import pytest

from rooftrace.kernelnames.demangle import demangle

MANGLED: list[tuple[str, str]] = [
    ("_Z3foov", "foo"),
    ("_ZN1a1bE", "a::b"),
    ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"),
    ("_Z1fIiEvv", "f<int>"),
    ("_Z1fILi3ELb1ELin5EEvv", "f<3, true, -5>"),
    ("_Z1fIDF16bDF16_DhEvv", "f<__bf16, _Float16, _Float16>"),
    ("_Z1fIPKfEvv", "f<float const*>"),
    # S_ is the first substitution: namespace `a`, after `a` of `a::f`
    ("_ZN1a1fINS_1bEEEvv", "a::f<a::b>"),
    # S0_ the second: the template `a::f`, S1_ the third: `a::b`
    ("_ZN1a1fINS_1bES1_EEvv", "a::f<a::b, a::b>"),
    ("_Z1fISt5arrayIPcLm3EEEvv", "f<std::array<char*, 3>>"),
    ("_Z1fIJifEEvv", "f<int, float>"),
    ("_Z1fIJEEvv", "f<>"),
    ("_Z1fIiJfbEEvv", "f<int, float, bool>"),
    ("_Z1fIN2ck4EnumEEvv", "f<ck::Enum>"),
    ("_Z1fILN2ck4EnumE1EEvv", "f<1>"),
    ("__Z3foov", "foo"),
    # Not mangled, or nothing to read
    ("volta_sgemm", "volta_sgemm"),
    ("_Z", "_Z"),
    ("_ZN", "_ZN"),
    # Cut off, or an expression: what was read is kept
    ("_ZN1a1fIi", "a::f<int, …>"),
    ("_ZN1a9fragment", "a::fragment…"),
    ("_Z1fIXadL_Z1gEEEvv", "f<…>"),
]


@pytest.mark.parametrize(("mangled", "readable"), MANGLED)
def test_names_are_read_as_the_abi_says(mangled, readable):
    assert demangle(mangled) == readable


def test_substitutions_cannot_blow_a_name_up():
    # each `1bI S_ S_ E` doubles the text of the one before it: 2^200 without a cap
    assert len(demangle("_ZN1aI" + "1bIS_S_E" * 200)) < 1_000
