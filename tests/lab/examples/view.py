"""The results of the examples for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from soal.console.view import View, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.lab.examples.record import ExampleRecord

__all__ = ["examples_view"]


def examples_view(records: Sequence[ExampleRecord]) -> View:
    """Count the examples that ran, and show the others with their reasons."""
    ran = [record for record in records if record.state == "SUCCESS"]
    table = columns("example", "state", "reason")
    for record in records:
        if record.state != "SUCCESS":
            table.add_row(
                Text(record.example),
                record.state or "not run",
                Text(f"needs {record.needs}" if record.needs else record.says or ""),
            )
    counted = f"{len(ran)} of {len(records)} examples ran"
    return View([record.model_dump() for record in records], (counted, table) if table.rows else (counted,))
