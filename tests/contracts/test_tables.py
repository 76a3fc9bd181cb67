"""CSV: what is written, how it is read, what is refused."""

from __future__ import annotations

import pytest

from rooftrace.contracts.tables import GAPS, Column, Table, read_csv, read_table, table_problems, write_csv
from rooftrace.errors import CheckFailed

SMALL = Table(
    name="small",
    columns=(
        Column(name="id", type="str", description="Id."),
        Column(name="n", type="int", description="Count."),
        Column(name="x", type="float", description="Share.", optional=True),
        Column(name="ok", type="bool", description="Whether."),
        Column(name="shapes", type="json", description="Shapes."),
    ),
)
TEXT = 'id,n,x,ok,shapes\n"a,b",-3,0.5,true,"[[2,3]]"\n"say ""hi""",0,,false,null\n"two\nlines",7,1e-06,true,{}\n'
ROWS = [
    ("a,b", -3, 0.5, True, "[[2,3]]"),
    ('say "hi"', 0, None, False, "null"),
    ("two\nlines", 7, 1e-06, True, "{}"),
]


def test_rows_are_written_with_empty_cells_for_none_and_json_for_booleans():
    assert write_csv(SMALL, ROWS) == TEXT


def test_what_was_written_is_read_as_text_cells():
    assert read_csv(TEXT) == [
        {"id": "a,b", "n": "-3", "x": "0.5", "ok": "true", "shapes": "[[2,3]]"},
        {"id": 'say "hi"', "n": "0", "x": "", "ok": "false", "shapes": "null"},
        {"id": "two\nlines", "n": "7", "x": "1e-06", "ok": "true", "shapes": "{}"},
    ]
    assert list(table_problems(SMALL, "small.csv", TEXT)) == []


def test_a_table_without_rows_is_its_header():
    assert write_csv(GAPS, []) == "device,start_ns,dur_ns,cause,step,before,after,op,source\n"
    assert read_csv(write_csv(GAPS, [])) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("a,x,0.5,true,[]", ", n: 'x' is no int"),
        ("a,1.0,0.5,true,[]", ", n: '1.0' is no int"),
        ("a,,0.5,true,[]", ", n: '' is no int"),
        ("a,\u0661,0.5,true,[]", ", n: '\u0661' is no int"),  # an Arabic one: a digit, but not in these files
        ("a,1,nan,true,[]", ", x: 'nan' is no float"),
        ("a,1,1_000.0,true,[]", ", x: '1_000.0' is no float"),
        ("a,1,0.5,True,[]", ", ok: 'True' is no bool"),
        ("a,1,0.5,true,[1;2]", ", shapes: '[1;2]' is no json"),
        ("a,1,0.5,true", ": 4 cells under 5 columns"),
        ("a,1,0.5,true,[],more", ": 6 cells under 5 columns"),
        ("", ": 0 cells under 5 columns"),
    ],
)
def test_a_row_that_does_not_fit_is_told_by_line_and_column(row, problem):
    text = f"id,n,x,ok,shapes\nfine,1,,true,[]\n{row}\n"

    assert list(table_problems(SMALL, "small.csv", text)) == [f"small.csv, line 3{problem}"]


def test_no_more_than_five_cells_are_told():
    text = "id,n,x,ok,shapes\n" + "a,x,,true,[]\n" * 9

    assert len(list(table_problems(SMALL, "small.csv", text))) == 5


@pytest.mark.parametrize("header", ["n,id,x,ok,shapes", "id,n,x,ok", "", "\ufeffid,n,x,ok,shapes"])
def test_another_header_is_another_table(header):
    problems = list(table_problems(SMALL, "small.csv", f"{header}\na,1,,true,[]\n"))

    assert problems == [f"small.csv: the header is {header}"]


def test_a_table_that_was_edited_cannot_be_read():
    with pytest.raises(CheckFailed) as caught:
        read_table(SMALL, "small.csv", "id,n,x,ok,shapes\na,many,,true,[]\n")
    assert str(caught.value) == (
        "error: `small.csv` does not match its table\n"
        "  small.csv, line 2, n: 'many' is no int\n"
        "\n"
        "hint: Run `rooftrace analyze TRACE -o RUN` to make it again; it is generated and not to be edited"
    )
