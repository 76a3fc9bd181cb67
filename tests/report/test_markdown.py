from __future__ import annotations

import pytest

from rooftrace.report.cells import as_markdown, table
from rooftrace.report.markdown import Safe, code, md, points, prose, spans, tail, token


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("native_layer_norm", "native_layer_norm"),
        ("_softmax_", r"\_softmax\_"),
        ("a|b", r"a\|b"),
        ("a`b`c", r"a\`b\`c"),
        ("**bold**", r"\*\*bold\*\*"),
        ("[link](http://x)", r"\[link\](http:&#47;/x)"),
        ("see www.x.example", "see www&#46;x.example"),
        ("zero\u200bwidth", "zerowidth"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("<!-- /finding -->", "&lt;!-- /finding --&gt;"),
        ("{{ 7*7 }}", r"{ { 7\*7 } }"),
        ("{% if x %}", "{ % if x % }"),
        ("two\nlines\tand\x00control\u202e", "two lines and control"),
        ("# heading", r"\# heading"),
        ("1. item", r"\1. item"),
        ("- item", r"\- item"),
    ],
)
def test_text_is_shown_literally(text, shown):
    assert md(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aten::mm", "`aten::mm`"),
        ("Functor<float, 4>", "`Functor<float, 4>`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("a``b`c", "```a``b`c```"),
        ("a|b", r"`a\|b`"),
        ("<!-- /finding -->", "`<! -- /finding -- >`"),
        ("{{gemm.F1.time_ms}}", "`{ {gemm.F1.time_ms} }`"),
        ("a\n\n# b", "`a # b`"),
        ("", "-"),
    ],
)
def test_code_survives_what_a_name_may_hold(text, shown):
    assert code(text) == shown


def test_long_names_end_in_an_ellipsis_within_the_limit():
    assert md("x" * 200) == "x" * 119 + "…"
    assert code("x" * 121) == "`" + "x" * 119 + "…`"
    assert code("x" * 120) == "`" + "x" * 120 + "`"


def test_the_end_of_a_path_is_kept():
    assert tail("Model_0.Block_3.Linear_1", 12) == "…_3.Linear_1"
    assert tail("Linear", 12) == "Linear"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("gemm.F1", "gemm.F1"), ("a b>c", "a_b_c"), ("x-->", "x__"), ("", "_"), ("a=b\n", "a_b_")],
)
def test_marker_attributes_are_plain_tokens(text, shown):
    assert token(text) == shown


def test_prose_keeps_its_markup_but_cannot_close_a_marker_or_open_a_heading():
    assert prose("Use `x` <!-- /finding --> now\nand **then**") == "Use `x` <! -- /finding -- > now and **then**"
    assert prose("# not a heading") == r"\# not a heading"


def test_paragraphs_become_items_below_the_first():
    assert points("first\n\nAlso: second") == "first\n  - Also: second"


def test_a_table_stands_between_its_markers_and_escapes_its_cells():
    text = table([["a", 1, None], [Safe("`b|c`"), 2, "x|y"]], "t", ["Name", "N>", "Rest"], {"a": "In words"})

    assert text.splitlines() == [
        "<!-- table id=t -->",
        "| Name | N | Rest |",
        "|---|---:|---|",
        "| In words | 1 | - |",
        r"| `b|c` | 2 | x\|y |",
        "<!-- /table -->",
    ]


def test_a_list_is_refused_since_its_strings_would_go_unescaped():
    with pytest.raises(TypeError, match="a template writes a list"):
        as_markdown(["<script>"])


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a name (`HF_TOKEN`): remove it", "a name (`HF_TOKEN`): remove it"),
        ("`fusion.F1`, `idle.F1` and x_*y*", "`fusion.F1`, `idle.F1` and x\\_\\*y\\*"),
        ("an odd ` stays shown", "an odd \\` stays shown"),
        ("`<!-- /finding -->` <b>", "`<! -- /finding -- >` &lt;b&gt;"),
    ],
)
def test_names_in_backticks_become_code_and_the_rest_shows_literally(text, markdown):
    assert spans(text) == markdown
