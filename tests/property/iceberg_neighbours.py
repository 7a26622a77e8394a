"""The neighbours in a random history of an Iceberg table: another application that writes and maintains the table
without SafeWriter. Spark is one JVM here, so the neighbour has a session of its own, on another thread.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import ancestors_of

from tests.integration.safewriter.ice_rows import elsewhere
from tests.property.iceberg_writers import draw_rows, sql
from tests.property.writers import new_session

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

    from tests.property.iceberg_judge import Watched

__all__ = ["Foreigners", "reader"]

_MODES: Final = ("write.delete.mode", "write.update.mode", "write.merge.mode")
_RETRIES: Final = "commit.retry.num-retries"


def reader(spark: SparkSession, watched: dict[str, str]) -> SparkSession:
    """Return a session that has a catalog by its settings and caches no table of it."""
    session = new_session(spark)
    (name,) = (key for key in watched if key.count(".") == 3)
    more = {f"{name}.cache-enabled": "false"}
    for key, value in {**watched, **more}.items():
        session.conf.set(key, value)
    return session


class Foreigners:
    """Foreign actions, one at a time; each returns the table's rows after it."""

    def __init__(self, random: random.Random, spark: SparkSession, watched: Watched) -> None:
        self._random, self._watched = random, watched
        self._spark = reader(spark, watched.ice.catalog.settings())
        self._number = 0

    @property
    def is_away(self) -> bool:
        """Whether the table has another name now."""
        return self._watched.name != self._watched.ice.name

    def create(self) -> str:
        """Make the table, and fill it or not."""
        watched, version = self._watched, self._random.choice([2, 2, 3])
        mode = self._random.choice(["copy-on-write", "merge-on-read"])
        properties = {"format-version": str(version), **dict.fromkeys(_MODES, mode)}
        told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._spark.sql(f"CREATE TABLE {watched.ice.name} (id LONG) USING iceberg TBLPROPERTIES ({told})")
        filled = self._random.random() < 0.7
        if filled:
            self._sql(f"INSERT INTO {watched.ice.name} (id) SELECT id FROM range(0, 12, 1, 2)")
        watched.accept(Counter(range(12)) if filled else Counter(), anew=True)
        return f"{properties}, {'filled' if filled else 'empty'}"

    def act(self, number: int, *, may_drop_fences: bool) -> str:
        """Draw and carry out an action; return its name. A fence may be dropped once its attempt cannot land."""
        self._number = number
        actions: list[Callable[[Table], tuple[str, Counter[int]]]] = [
            *[self._write] * 5, *[self._expire] * 2, *[self._compact] * 2, *[self._set_main] * 3,
            *[self._cherry_pick] * 3, *[self._write_branch] * 2, self._mark, self._unmark, self._evolve,
            self._partition, self._upgrade, self._tune,
        ]  # fmt: skip
        if may_drop_fences:
            actions.append(self._drop_fences)
        what, rows = self._random.choice(actions)(self._watched.table())
        self._watched.accept(rows)
        return what

    def rename(self) -> str:
        """Rename the table, or restore its own name."""
        watched = self._watched
        new = watched.ice.name if self.is_away else f"{watched.ice.name}_away"
        self._sql(f"ALTER TABLE {watched.name} RENAME TO {new.partition('.')[2]}")
        watched.name = new
        watched.accept(watched.rows)
        return f"rename to {new}"

    def replace(self) -> str:
        """Drop the table, and create another with its name."""
        self._sql(f"DROP TABLE {self._watched.name}")
        self._watched.name = self._watched.ice.name
        return f"drop and create {self.create()}"

    # -- rows --------------------------------------------------------------------------------------------------------

    def _write(self, _: Table) -> tuple[str, Counter[int]]:
        operation = draw_rows(self._random, self._number)
        self._sql(sql(operation, self._watched.name))
        return str(operation), operation.effect(self._watched.rows)

    def _write_branch(self, table: Table) -> tuple[str, Counter[int]]:
        """Append to a foreign branch, from which main may be cherry-picked."""
        watched, name = self._watched, f"b{self._number}"
        head = table.metadata.current_snapshot_id
        if head is None:
            return "nothing", watched.rows
        self._sql(f"ALTER TABLE {watched.name} CREATE BRANCH {name}")
        ids = range(self._number * 100, self._number * 100 + 3)
        self._sql(f"INSERT INTO {watched.name}.branch_{name} (id) SELECT id FROM range({ids.start}, {ids.stop}, 1, 1)")
        watched.references.add(name)
        watched.rows_at[watched.table().metadata.refs[name].snapshot_id] = watched.rows + Counter(ids)
        return f"append {ids} to branch {name}", watched.rows

    def _set_main(self, table: Table) -> tuple[str, Counter[int]]:
        """Set main back or forward, to a snapshot that main or a branch has shown."""
        watched = self._watched
        places = sorted(watched.rows_at.keys() - {table.metadata.current_snapshot_id})
        if not places:
            return "nothing", watched.rows
        to = self._random.choice(places)
        self._call("set_current_snapshot", f"snapshot_id => {to}")
        return f"set main to {to}", watched.rows_at[to]

    def _cherry_pick(self, table: Table) -> tuple[str, Counter[int]]:
        """Cherry-pick an append that is not in main's history."""
        watched, metadata = self._watched, table.metadata
        current = metadata.current_snapshot()
        history = [] if current is None else list(ancestors_of(current, metadata))
        known = {snapshot.snapshot_id for snapshot in history}
        picked = {snapshot.summary["source-snapshot-id"] for snapshot in history if snapshot.summary
                  and "source-snapshot-id" in snapshot.summary.additional_properties}  # fmt: skip
        found = [
            one
            for one in metadata.snapshots
            if one.snapshot_id not in known
            and str(one.snapshot_id) not in picked
            and one.summary is not None
            and one.summary.operation.value == "append"
            and one.snapshot_id in watched.rows_at
            and one.parent_snapshot_id in watched.rows_at
        ]
        if not found:
            return "nothing", watched.rows
        one = self._random.choice(found)
        self._call("cherrypick_snapshot", f"snapshot_id => {one.snapshot_id}")
        assert one.parent_snapshot_id is not None
        added = watched.rows_at[one.snapshot_id] - watched.rows_at[one.parent_snapshot_id]
        return f"cherry-pick {one.snapshot_id}", watched.rows + added

    # -- actions that leave the rows as they are
    # ------------------------------------------------------------------------

    def _expire(self, _: Table) -> tuple[str, Counter[int]]:
        self._call("expire_snapshots", "older_than => now(), retain_last => 1")
        return "expire_snapshots", self._watched.rows

    def _compact(self, _: Table) -> tuple[str, Counter[int]]:
        kind = self._random.choice(["rewrite_data_files", "rewrite_manifests"])
        self._call(kind, "options => map('rewrite-all', 'true')" if kind == "rewrite_data_files" else "")
        return kind, self._watched.rows

    def _mark(self, table: Table) -> tuple[str, Counter[int]]:
        if table.metadata.current_snapshot_id is None:
            return "nothing", self._watched.rows
        name = f"r{self._number}"
        self._sql(f"ALTER TABLE {self._watched.name} CREATE {self._random.choice(['TAG', 'BRANCH'])} {name}")
        self._watched.references.add(name)
        return f"create {name}", self._watched.rows

    def _unmark(self, table: Table) -> tuple[str, Counter[int]]:
        if not self._watched.references:
            return "nothing", self._watched.rows
        name = self._random.choice(sorted(self._watched.references))
        self._drop(table, name)
        self._watched.references.remove(name)
        return f"drop {name}", self._watched.rows

    def _drop_fences(self, table: Table) -> tuple[str, Counter[int]]:
        for name in sorted(table.metadata.refs.keys() - self._watched.references - {MAIN_BRANCH}):
            self._drop(table, name)
        return "drop all fences", self._watched.rows

    def _drop(self, table: Table, name: str) -> None:
        kind = table.metadata.refs[name].snapshot_ref_type.value.upper()
        self._sql(f"ALTER TABLE {self._watched.name} DROP {kind} `{name}`")

    def _evolve(self, table: Table) -> tuple[str, Counter[int]]:
        change = f"ADD COLUMN c{self._number} STRING"
        if len(names := table.schema().column_names) > 1:
            change = self._random.choice([f"DROP COLUMN {names[1]}", f"RENAME COLUMN {names[1]} TO n{self._number}"])
        return self._alter(change)

    def _partition(self, table: Table) -> tuple[str, Counter[int]]:
        found = [field.name for field in table.spec().fields if str(field.transform) != "void"]
        return self._alter(f"DROP PARTITION FIELD {found[0]}" if found else "ADD PARTITION FIELD bucket(2, id)")

    def _upgrade(self, _: Table) -> tuple[str, Counter[int]]:
        return self._alter("SET TBLPROPERTIES ('format-version' = '3')")

    def _tune(self, table: Table) -> tuple[str, Counter[int]]:
        """Change modes, and a property that a publication has in memory with another value."""
        if self._random.random() < 0.5:
            mode = self._random.choice(["copy-on-write", "merge-on-read"])
            return self._alter(f"SET TBLPROPERTIES ('{self._random.choice(_MODES)}' = '{mode}')")
        unset = _RETRIES in table.properties
        return self._alter(
            f"UNSET TBLPROPERTIES ('{_RETRIES}')" if unset else f"SET TBLPROPERTIES ('{_RETRIES}' = '3')"
        )

    def _alter(self, change: str) -> tuple[str, Counter[int]]:
        self._sql(f"ALTER TABLE {self._watched.name} {change}")
        return change, self._watched.rows

    def _call(self, procedure: str, arguments: str) -> None:
        catalog, _, table = self._watched.name.partition(".")
        more = f", {arguments}" if arguments else ""
        self._sql(f"CALL {catalog}.system.{procedure}(table => '{table}'{more})")

    def _sql(self, statement: str) -> None:
        elsewhere(lambda: self._spark.sql(statement).collect())  # on the block's thread it would belong to the block
