"""One write of the campaign, in a process of its own: `python -m tests.lab.campaign.job`, with its order in a variable.

At its end it prints a line of JSON, which acknowledges the write.
"""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from handler.process.tree import die_with_parent
from safewriter import SafeWriter
from tests.lab.experiment.job import session
from tests.lab.processes import ORDER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.lab.experiment.plan import Format

__all__ = ["AFTER", "BATCH", "BEFORE", "STATEMENTS", "Order", "write"]

_BASE: Final = tuple(range(5))
BATCH: Final = tuple(range(2, 9))
BEFORE: Final = {"append": _BASE, "create": (), "overwrite": _BASE, "merge": _BASE}
"""The ids before the write, by statement; none if the statement creates its table."""
AFTER: Final = {
    "append": tuple(sorted((*_BASE, *BATCH))),
    "create": BATCH,
    "overwrite": BATCH,
    "merge": (0, 1, 5, 6, 7, 8, 102, 103, 104),
}
"""The ids after the write, sorted."""
STATEMENTS: Final[dict[Format, tuple[str, ...]]] = {
    "delta": ("append", "create", "overwrite", "merge"),
    "iceberg": ("append", "overwrite", "merge"),
}
"""The guard's statements for each format: an Iceberg table must exist before its block."""
_SQL: Final = {
    "append": "INSERT INTO {table} SELECT id FROM range({first}, {end}, 1, {tasks})",
    "overwrite": "INSERT OVERWRITE {table} SELECT id FROM range({first}, {end}, 1, {tasks})",
    "merge": (
        "MERGE INTO {table} t USING (SELECT id FROM range({first}, {end}, 1, {tasks})) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT *"
    ),
}


@dataclass(frozen=True, slots=True)
class Order:
    """A job's order. `settings`: Spark's settings of the Iceberg catalog."""

    table: str
    table_format: str
    statement: str
    guarded: bool
    settings: dict[str, str]
    tasks: int = 1
    commit_point: Literal["write", "success"] = "write"


def write(spark: SparkSession, order: Order) -> None:
    """Carry out the order. Raises whatever the write raises."""
    guard = (
        SafeWriter(spark, order.table, format=order.table_format, commit_point=order.commit_point)
        if order.guarded
        else nullcontext()
    )
    with guard as block:
        _write(spark, order, order.table if block is None else block.table)
        if block is not None:
            block.success()


def _write(spark: SparkSession, order: Order, table: str) -> None:
    if order.statement == "create":
        spark.range(BATCH[0], BATCH[-1] + 1, 1, order.tasks).write.format("delta").mode("append").save(table)
        return
    named = f"delta.`{table}`" if order.table_format == "delta" else table
    spark.sql(_SQL[order.statement].format(table=named, first=BATCH[0], end=BATCH[-1] + 1, tasks=order.tasks))


def main(order: Order) -> None:
    """Write, in a session of this process's own."""
    write(session(f"local[{order.tasks}]", order.settings, guarded=order.guarded), order)
    print(json.dumps({"acknowledged": True}), flush=True)


if __name__ == "__main__":
    die_with_parent()  # Java ends with this process
    main(Order(**json.loads(os.environ[ORDER])))
