"""Tables of a run, read back."""

from __future__ import annotations

from rooftrace.contracts import tables
from rooftrace.report import files


def written(tmp_path, rows):
    """A run with a table of kernels: (stream, name, owner, count, total, median)."""
    table = tables.KERNELS
    cells = []
    for stream, name, owner, count, total, median in rows:
        given = {"device": 0, "stream": stream, "kernel": name, "short": name.upper(), "kind": "kernel"}
        given |= {"category": "gemm", "owner_op": owner, "linked": "correlation", "count": count, "facts": "{}"}
        given |= {"graph_replayed": False, "total_ns": total, "min_ns": 1, "median_ns": median, "max_ns": total}
        cells.append([given.get(column.name) for column in table.columns])
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "kernels.csv").write_text(tables.write_csv(table, cells), encoding="utf-8")
    return tmp_path


def test_rows_of_a_kernel_are_one_with_all_owners_in_the_order_of_the_rows(tmp_path):
    run = written(
        tmp_path,
        [
            (7, "mm", "aten::mm", 2, 60, 30),
            (7, "add", "aten::add", 1, 500, 500),
            (7, "mm", "aten::bmm", 1, 90, 90),
            (8, "mm", "aten::mm", 3, 30, 10),
            (8, "mm", None, 1, 20, 20),
        ],
    )

    add, mm = files.read_kernels(run)

    assert (add.name, add.owners, add.count, add.total_ns, add.median_ns) == ("add", ("aten::add",), 1, 500, 500)
    assert (mm.name, mm.short, mm.kind, mm.category, mm.library) == ("mm", "MM", "kernel", "gemm", "")
    assert mm.owners == ("aten::mm", "aten::bmm", "")
    assert (mm.count, mm.total_ns) == (7, 200)  # 2 + 1 + 3 + 1; 60 + 90 + 30 + 20
    assert mm.median_ns == 90  # of the row of 90, more than the 60 before it; 30 and 20 are less than 150


def test_the_owners_of_a_kernel_are_put_together_once(tmp_path, monkeypatch):
    run = written(tmp_path, [(7, "mm", f"op{number}", 1, 1, 1) for number in range(100)])
    held = []

    put = files.replace
    monkeypatch.setattr(files, "replace", lambda row, **new: (held.append(len(new["owners"])), put(row, **new))[1])

    (kernel,) = files.read_kernels(run)

    assert (len(kernel.owners), kernel.owners[0], kernel.owners[-1]) == (100, "op0", "op99")
    assert sum(held) == 100  # not 1 + 2 + … + 100 = 5,050
