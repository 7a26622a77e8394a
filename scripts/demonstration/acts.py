"""Three invocations of one job: it succeeds, the next batch reaches its deadline, the retry lands once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from rich.rule import Rule
from rich.table import Table

if TYPE_CHECKING:
    from handler.outcome.result import Result
    from scripts.demonstration.stage import Demo
    from scripts.tables.delta import TableView

_HELD: Final = "accommodations_held"
_PAUSE_S: Final = 600
_SPARE_S: Final = 3


def play(demo: Demo, rows: int) -> None:
    """Play the three acts, with a file of `rows` rows."""
    first, after_first = _succeeds(demo, rows)
    after_second = _reaches_its_deadline(demo, first, after_first)
    after_third = _is_retried(demo, rows, after_second)
    demo.console.print()
    demo.console.print(_summary((after_first, after_second, after_third)))


def _succeeds(demo: Demo, rows: int) -> tuple[Result, TableView]:
    title = f"1  A job writes a CSV file to a new {demo.format.name.capitalize()} table, guarded"
    demo.console.print(Rule(title, align="left"))
    result = demo.run(f"accommodations_{demo.format.name}", "monday")
    view = demo.table()
    document = demo.checkpoint(result.writes[0]) if result.writes else {}
    demo.claims.check("the job succeeded", holds=result.state == "SUCCESS")
    demo.claims.check(f"the table holds the {rows:,} rows of the file", holds=view.rows == rows)
    demo.claims.check("the checkpoint says committed", holds=document.get("status") == "committed")
    demo.claims.check("every data file belongs to a version of the table", holds=not view.orphans)
    return result, view


def _reaches_its_deadline(demo: Demo, first: Result, before: TableView) -> TableView:
    # The watchdog keeps a quarter of a short timeout for settling; the job must have written its first part before.
    timeout_s = math.ceil((first.timings.total_ms / 1000 + _SPARE_S) * 4 / 3)
    demo.console.print(
        Rule(f"2  The next batch: half of its data comes late, the timeout is {timeout_s} s", align="left")
    )
    length = len(demo.s3.trace())
    result = demo.run(_HELD, "tuesday", *_arguments(demo), timeout_s=timeout_s, pause_s=_PAUSE_S)
    view = demo.table()
    count = demo.data_files_sent(length)
    statuses = [write.status for write in result.writes]
    demo.claims.check("the function answered before Lambda killed it", holds=result.timings.remaining_ms > 0)
    demo.claims.check("the job timed out, and its write was rolled back", holds=statuses == ["rolled_back"])
    demo.claims.check("the table is as it was", holds=(view.version, view.rows) == (before.version, before.rows))
    demo.claims.check(
        f"of the {count} data file(s) that had reached S3, no version has one, and none is left", holds=not view.orphans
    )
    return view


def _is_retried(demo: Demo, rows: int, before: TableView) -> TableView:
    demo.console.print(Rule("3  The retry: the same job with the same clientToken", align="left"))
    result = demo.run(_HELD, "tuesday", *_arguments(demo))
    view = demo.table()
    document = demo.checkpoint(result.writes[0]) if result.writes else {}
    demo.claims.check("the retry succeeded, as attempt 2", holds=(result.state, result.attempt) == ("SUCCESS", 2))
    demo.claims.check(
        f"the batch is in the table once: {before.rows:,} + {rows:,} rows", holds=_grew(before, view, rows)
    )
    demo.claims.check("the checkpoint says committed, in epoch 2", holds=_verdict(document) == ("committed", 2))
    demo.claims.check(
        "every data file of the retry belongs to a version of the table", holds=view.orphans == before.orphans
    )
    return view


def _arguments(demo: Demo) -> tuple[str, str]:
    return "--format", demo.format.name


def _grew(before: TableView, after: TableView, rows: int) -> bool:
    return after.rows == before.rows + rows and after.version == before.version + 1


def _verdict(document: dict[str, Any]) -> tuple[object, object]:
    return document.get("status"), document.get("epoch")


def _summary(views: tuple[TableView, TableView, TableView]) -> Table:
    table = Table(box=None, header_style="dim")
    for name in ("", "version", "rows", "files", "orphans"):
        table.add_column(name, justify="right" if name else "left")
    for when, view in zip(("after the first batch", "after the deadline", "after the retry"), views, strict=True):
        table.add_row(when, str(view.version), f"{view.rows:,}", str(view.files), str(len(view.orphans)))
    return table
