"""What the writers of a random history do to a table of ids, and what it makes of a multiset of ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from pyspark.sql import SparkSession

__all__ = ["Operation", "draw"]

_MOVED: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Operation:
    """One statement. `effect` gives the ids after it for those before it."""

    name: str
    run: Callable[[SparkSession, str], object]
    effect: Callable[[Counter[int]], Counter[int]]


def draw(random: random.Random, number: int) -> Operation:
    """Draw an operation; the ids that it brings are its own by `number`."""
    kind = random.choice(["append", "append", "merge", "delete", "update", "overwrite"])
    rest = random.randrange(4)
    if kind in ("append", "overwrite"):
        return _write(kind, range(number * 100, number * 100 + random.randrange(4, 12)))
    if kind == "merge":
        return _merge(range(number * 100 - 96, number * 100 + 3, 8))
    if kind == "delete":
        return _delete(rest)
    return _update(rest)


def _write(mode: str, ids: range) -> Operation:
    def run(spark: SparkSession, table: str) -> None:
        spark.range(ids.start, ids.stop, 1, 2).write.format("delta").mode(mode).save(table)

    return Operation(
        f"{mode} {ids}", run, lambda before: Counter(ids) if mode == "overwrite" else before + Counter(ids)
    )


def _merge(ids: range) -> Operation:
    def run(spark: SparkSession, table: str) -> None:
        spark.range(ids.start, ids.stop, ids.step, 1).createOrReplaceTempView("batch")
        spark.sql(
            f"MERGE INTO delta.`{table}` t USING batch s ON t.id = s.id"
            f" WHEN MATCHED THEN UPDATE SET id = t.id + {_MOVED} WHEN NOT MATCHED THEN INSERT *"
        )

    def effect(before: Counter[int]) -> Counter[int]:
        return _moved(before, lambda id_: id_ in ids) + Counter(id_ for id_ in ids if id_ not in before)

    return Operation(f"merge {ids}", run, effect)


def _delete(rest: int) -> Operation:
    def run(spark: SparkSession, table: str) -> object:
        return spark.sql(f"DELETE FROM delta.`{table}` WHERE id % 4 = {rest} AND id % 3 = 0")

    def effect(before: Counter[int]) -> Counter[int]:
        return Counter({id_: count for id_, count in before.items() if id_ % 4 != rest or id_ % 3})

    return Operation(f"delete {rest}", run, effect)


def _update(rest: int) -> Operation:
    def run(spark: SparkSession, table: str) -> object:
        return spark.sql(f"UPDATE delta.`{table}` SET id = id + {_MOVED} WHERE id % 5 = {rest}")

    return Operation(f"update {rest}", run, lambda before: _moved(before, lambda id_: id_ % 5 == rest))


def _moved(before: Counter[int], matches: Callable[[int], bool]) -> Counter[int]:
    after: Counter[int] = Counter()
    for id_, count in before.items():
        after[id_ + _MOVED if matches(id_) else id_] += count
    return after
