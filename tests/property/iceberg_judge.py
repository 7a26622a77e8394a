"""The invariants of an Iceberg table at every moment of a random history, checked by independent readers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pyiceberg.catalog import load_catalog
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType

from safewriter.record.document import NO_CHANGE, Status

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

    from tests.property.operations import Operation
    from tests.support.ice import Ice

__all__ = ["Watched"]

_MARK: Final = "safewriter."
_KEY: Final = 15
"""As much of a write's key as tells the writes of one history apart; their attempts' names begin with the key."""


class Watched:
    """The table. `rows` are the expected ones: callers report the effect of foreign actions, and a guarded write is
    added when its attempt's mark appears. `rows_at` holds them by main's snapshot.
    """

    def __init__(self, ice: Ice, spark: SparkSession) -> None:
        self.ice, self._spark = ice, spark
        self.name = ice.name
        self.rows: Counter[int] = Counter()
        self.rows_at: dict[int, Counter[int]] = {}
        self.references: set[str] = set()
        """Foreign branches and tags."""
        self.marks: set[str] = set()
        self.landed: dict[str, str] = {}
        """The landed attempt, by the prefix of a write's attempts' names."""
        self._attempts: dict[str, tuple[Operation, ...]] = {}
        self._properties: dict[str, str] = {}
        self._columns: list[str] = []
        self._location = ""

    def table(self) -> Table:
        catalog = load_catalog(self.ice.catalog.name, **self.ice.catalog.pyiceberg)
        return catalog.load_table(self.name.partition(".")[2])

    def expect(self, attempt: str, operations: tuple[Operation, ...]) -> None:
        """Register an attempt, which may land from now on."""
        self._attempts[attempt] = operations

    def has_landed(self, write_key: str) -> bool:
        return write_key[:_KEY] in self.landed

    # -- after each step ---------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Judge the table after a step of a guarded writer, of the network or of a recovery: at most one attempt has
        landed, completely, and has changed only the rows.
        """
        table = self.table()
        if table.metadata_location == self._location:
            return
        self._location = table.metadata_location
        self._see_marks(table)
        self._see_rows(table)
        assert _plain(table) == self._properties
        assert table.schema().column_names == self._columns
        for name in table.metadata.refs.keys() - self.references - {MAIN_BRANCH}:
            found = table.metadata.refs[name]
            assert name in self._attempts, f"{name} is neither theirs nor a fence"
            assert (found.snapshot_ref_type, bool(found.max_ref_age_ms)) == (SnapshotRefType.TAG, True), found

    def _see_marks(self, table: Table) -> None:
        marks = _marks(table)
        new = marks - self.marks
        assert self.marks <= marks, "a mark is gone"
        assert len(new) <= 1, new
        for attempt in new:
            assert attempt[:_KEY] not in self.landed, f"{attempt} has landed beside {self.landed[attempt[:_KEY]]}"
            self.landed[attempt[:_KEY]] = attempt
            for operation in self._attempts[attempt]:
                self.rows = operation.effect(self.rows)
        self.marks = marks

    def _see_rows(self, table: Table) -> None:
        rows = Counter(row.id for row in self._spark.table(self.name).select("id").collect())
        assert rows == self.rows, {"missing": self.rows - rows, "unexpected": rows - self.rows}
        head = table.metadata.current_snapshot_id
        if head is not None:
            self.rows_at[head] = self.rows

    def accept(self, rows: Counter[int], *, anew: bool = False) -> None:
        """Judge the table after a foreign action: it holds the expected rows, and other changes are allowed. `anew`: it
        is another table.
        """
        if anew:
            self.marks, self.rows_at, self.references = set(), {}, set()
        table = self.table()
        self.rows = rows
        self._location = table.metadata_location
        assert _marks(table) == self.marks
        self._see_rows(table)
        self._properties, self._columns = _plain(table), table.schema().column_names
        known = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        self.rows_at = {snapshot: rows for snapshot, rows in self.rows_at.items() if snapshot in known}

    # -- at the end --------------------------------------------------------------------------------------------------

    def check_verdicts(self) -> None:
        """Check that each verdict is true, and that only writes to a deleted table are unknown."""
        uuid = str(self.table().metadata.table_uuid)
        for document in self.ice.documents():
            has_landed = self.has_landed(document.write_key)
            if document.status is Status.COMMITTED:
                assert has_landed or document.reason == NO_CHANGE, document
            elif document.status is Status.ROLLED_BACK:
                assert not has_landed, document
            else:
                assert document.status is Status.UNKNOWN, document
                assert document.attempt.table_id != uuid, document

    def check_files(self) -> None:
        """Check that all files that the metadata reference exist."""
        assert self.ice.referred() <= self.ice.keys()


def _marks(table: Table) -> set[str]:
    return {name.removeprefix(_MARK) for name in table.properties if name.startswith(_MARK)}


def _plain(table: Table) -> dict[str, str]:
    return {name: value for name, value in table.properties.items() if not name.startswith(_MARK)}
