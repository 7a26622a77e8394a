"""The lab's view of Spark's examples shows those that did not run with their reasons, and counts the others."""

from __future__ import annotations

from rich.table import Table

from tests.lab.examples.view import examples_view
from tests.unit.lab.examples.test_record import record


def test_those_that_did_not_run_are_shown_with_their_reasons() -> None:
    """And the others are counted."""
    needs = record(example="b.py", state=None, needs="a server")
    view = examples_view([record(), record(example="a.py", state="FAILED", says="no Hive"), needs])
    counted, table = view.parts
    assert counted == "1 of 3 examples ran"
    assert isinstance(table, Table)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells == [["a.py", "b.py"], ["FAILED", "not run"], ["no Hive", "needs a server"]]
    assert [row["example"] for row in view.document] == ["pi.py", "a.py", "b.py"]


def test_where_all_ran_there_is_no_table() -> None:
    """Only their number."""
    assert examples_view([record()]).parts == ("1 of 1 examples ran",)
