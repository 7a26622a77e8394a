"""The operations of writers and neighbours in a random history of a table of ids, and their effect on its ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = ["MAINTENANCE", "MOVED", "ROWS", "Operation", "draw"]

MOVED: Final = 1_000_000
ROWS: Final = ("append", "append", "merge", "delete", "update", "overwrite", "replace")
"""Operations that write rows."""
MAINTENANCE: Final = frozenset({"optimize", "property", "vacuum"})
"""Operations that leave the rows unchanged."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One statement. `rest` selects rows; a RESTORE goes back to `version`, which had `rows`."""

    kind: str
    ids: range = range(0)
    rest: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    rows: Counter[int] = field(default_factory=Counter)

    def __str__(self) -> str:
        match self.kind:
            case "delete" | "update":
                return f"{self.kind} {self.rest}"
            case "restore":
                return f"restore {self.version}"
            case _ if self.ids:
                return f"{self.kind} {self.ids} {dict(self.properties) or ''}".rstrip()
        return f"{self.kind} {dict(self.properties) or ''}".rstrip()

    def effect(self, before: Counter[int]) -> Counter[int]:
        """Return the ids after it, given those before it."""
        after = before
        match self.kind:
            case "append":
                after = before + Counter(self.ids)
            case "overwrite" | "replace":
                after = Counter(self.ids)
            case "merge":
                new = Counter(id_ for id_ in self.ids if id_ not in before)
                after = _moved(before, lambda id_: id_ in self.ids) + new
            case "delete":
                after = Counter({id_: count for id_, count in before.items() if id_ % 4 != self.rest or id_ % 3})
            case "update":
                after = _moved(before, lambda id_: id_ % 5 == self.rest)
            case "restore":
                after = self.rows
            case _:
                assert self.kind in MAINTENANCE
        return after

    @property
    def condition(self) -> str:
        """The condition of a DELETE or an UPDATE."""
        return f"id % 4 = {self.rest} AND id % 3 = 0" if self.kind == "delete" else f"id % 5 = {self.rest}"

    def run(self, spark: SparkSession, table: str) -> None:
        """Carry it out in Spark."""
        if self.kind in ("append", "overwrite"):
            frame = spark.range(self.ids.start, self.ids.stop, 1, 2)
            frame.write.format("delta").mode(self.kind).save(table)
            return
        if self.kind == "merge":
            spark.range(self.ids.start, self.ids.stop, self.ids.step, 1).createOrReplaceTempView("batch")
        spark.sql(self._statement(f"delta.`{table}`")).collect()

    def _statement(self, table: str) -> str:
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())
        rows = f"SELECT id FROM range({self.ids.start}, {self.ids.stop}, 1, 2)"
        return {
            "merge": f"MERGE INTO {table} t USING batch s ON t.id = s.id"
            f" WHEN MATCHED THEN UPDATE SET id = t.id + {MOVED} WHEN NOT MATCHED THEN INSERT *",
            "delete": f"DELETE FROM {table} WHERE {self.condition}",
            "update": f"UPDATE {table} SET id = id + {MOVED} WHERE {self.condition}",
            "replace": f"CREATE OR REPLACE TABLE {table} USING delta TBLPROPERTIES ({properties}) AS {rows}",
            "property": f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})",
            "restore": f"RESTORE TABLE {table} TO VERSION AS OF {self.version}",
            "vacuum": f"VACUUM {table} RETAIN 0 HOURS",
            "optimize": f"OPTIMIZE {table}",
        }[self.kind]


def draw(random: random.Random, number: int, kinds: Sequence[str], *, vectors: bool) -> Operation:
    """Draw an operation; `number` determines its new ids. A REPLACE may enable deletion vectors if `vectors`."""
    kind = random.choice(kinds)
    ids, rest = range(number * 100, number * 100 + random.randrange(4, 12)), random.randrange(4)
    if kind == "merge":
        return Operation(kind, range(number * 100 - 96, number * 100 + 3, 8))
    if kind == "replace":
        chosen = random.choice(["true", "false"]) if vectors else "false"
        return Operation(kind, ids, properties={"delta.enableDeletionVectors": chosen, "delta.checkpointInterval": "6"})
    if kind == "property":
        key, value = random.choice([("delta.checkpointInterval", "5"), ("delta.enableChangeDataFeed", "true")])
        return Operation(kind, properties={key: value})
    return Operation(kind, ids if kind in ("append", "overwrite") else range(0), rest)


def _moved(before: Counter[int], matches: Callable[[int], bool]) -> Counter[int]:
    after: Counter[int] = Counter()
    for id_, count in before.items():
        after[id_ + MOVED if matches(id_) else id_] += count
    return after
