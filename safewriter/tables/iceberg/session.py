"""The Spark side of a guarded Iceberg block: its statements write into one transaction, which `success()` publishes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from safewriter.deadline import epoch_ms
from safewriter.errors import ConflictError, NotCommittedError, UnguardedSessionError, UnsupportedError
from safewriter.objects.s3 import table_store
from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.record import journal
from safewriter.tables.iceberg.catalogs import of_session, open_pointer, told
from safewriter.tables.iceberg.metadata import head_of, history_of, left_behind, misplaced, references, sequence_of
from safewriter.tables.iceberg.name import MAIN, TableName
from safewriter.tables.iceberg.table import DECIDED_MS, epochs_of, name_of, skipped_name, snapshots_of
from safewriter.tables.session import TableState
from safewriter.tables.spark import SparkScope
from safewriter.tables.thrown import thrown_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from safewriter.errors import SafeWriterError
    from safewriter.tables.iceberg.metadata import LiveTable
    from safewriter.tables.session import Opening

__all__ = ["IcebergSession", "StagingState"]

_log = logging.getLogger(__name__)
_CATALOG: Final = "spark.sql.catalog.safewriter"
_STAGE_ELSEWHERE: Final = ("spark.wap.branch", "spark.wap.id")
_REFUSED: Final = (
    "CommitFailedException", "ValidationException", "IllegalStateException", "IllegalArgumentException"
)  # fmt: skip
"""If Iceberg or `Publication.java` throws one of these, nothing was committed. Iceberg throws the last one for a
merge-on-read statement whose snapshot is no longer in main's history.
"""
_ELSEWHERE: Final = "UnsupportedOperationException"
"""Java throws this if a statement of the block still runs, has failed as the last one, or has staged rows for another
target than the block's.
"""
_STRAY_CURE: Final = (
    "Its rows stay, whatever becomes of the block, and a retry would write them again: take them back if they must not"
    " stay, and let the statement write SafeWriter.table"
)
_DENIED: Final = ("ForbiddenException", "NotAuthorizedException")
"""The catalog refuses the session's login, which no repetition renews."""
_GONE: Final = ("NoSuchTableException", "NotFoundException")
"""Iceberg throws one of these if there is no table under the name."""


@dataclass(frozen=True, slots=True)
class StagingState:
    """`passed`: the block has sent the publication. `answered`: the catalog has answered. The table decides.

    `mark`: the attempt's mark in the table's properties, as the catalog has shown it after the publication. `strays`:
    which statements of the block have written the table past it, and what to do; None if there are none.
    """

    passed: bool
    answered: bool
    noted: bool = False
    mark: str | None = None
    lost: None = None
    strays: str | None = None

    def error_of(self, error: Exception) -> SafeWriterError | None:  # noqa: ARG002 - of the protocol
        """Return None: the guard refuses nothing before `success()`."""
        return None


class IcebergSession(SparkScope):
    """One guarded block on one table of a catalog."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self._name = TableName.parse(table)
        super().__init__(spark, str(self._name))
        self._java = self.java_class("io.soal.iceberg.StagedTable")
        # PySpark's getAll calls Java for each setting.
        settings = parsed(self._java.settings(self.jspark, f"spark.sql.catalog.{self._name.catalog}"))
        self._catalog = of_session(self._name.catalog, settings)
        self._pointer = open_pointer(self._name, self._catalog, table_store)
        self._table = self.jspark, self._name.catalog, list(self._name.identifier)
        self._staging: Any = None
        self._live: LiveTable | None = None
        self._mark: str | None = None
        self._strays: str | None = None
        self._sent = False
        self._answered = True
        self._journal: tuple[str, str] | None = None
        self._skipped: frozenset[int] = frozenset()

    @property
    def secrets(self) -> Mapping[str, str]:
        """All of the catalog's properties, as the session has them."""
        return self._catalog

    @property
    def catalog(self) -> dict[str, str]:
        """The properties that a checkpoint may hold."""
        return told(self._catalog)

    # -- before ------------------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Raise `UnguardedSessionError` if the session's settings stage statements elsewhere."""
        for key in _STAGE_ELSEWHERE:
            if (value := self.spark.conf.get(key, None)) is not None:
                raise UnguardedSessionError(f"{key} is set to {value!r}: the block stages by itself; unset it first")

    def state(self) -> TableState:
        """Read the table's state from its catalog, as a settler would."""
        table = self._pointer.read()
        if table is None:
            raise UnsupportedError(
                f"{self._name} does not exist; create it before the block: spark.sql('CREATE"
                f" TABLE IF NOT EXISTS {self._name.quoted} (...) USING iceberg')"
            )
        metadata, target = table.metadata, self._name.target
        if (place := misplaced(metadata)) is not None:
            raise UnsupportedError(
                f"{self._name}: its {place}: its rows would be gone; set it to a URI of the lake, as s3://BUCKET/PATH"
            )
        self._live = table
        if target == MAIN and head_of(metadata, MAIN) is None:
            self._java.begin(*self._table)  # a fence needs a snapshot
        if target != MAIN and references(metadata).get(target, {}).get("type") != "branch":
            raise UnsupportedError(
                f"{self._name.quoted} has no branch called {target!r}; create it first:"
                f" ALTER TABLE {self._name.quoted} CREATE BRANCH `{target}`"
            )
        return TableState(
            version=head_of(metadata, target) or 0,
            table_id=str(metadata["table-uuid"]),
            features=(f"v{metadata['format-version']}",),
            properties={},
            modified_ms=metadata["last-updated-ms"],
            sequence=sequence_of(metadata),
            catalog=self.catalog,
        )

    def named_since(self, write_key: str) -> int | None:
        """Return 0 if the table's metadata names an attempt of the write, published or fenced; else None."""
        return 0 if self._live is not None and epochs_of(self._live, write_key) else None

    # -- inside ------------------------------------------------------------------------------------------------------

    def begin(self, opening: Opening) -> None:
        """Open the transaction that the block's statements write into."""
        attempt = opening.document.attempt
        if opening.journal:
            self._journal = opening.journal, opening.document.owner
        self._open(name_of(attempt), str(attempt.table_id), opening.latest_start_ms)

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Let each statement of the block write into a transaction that is never published."""
        self._open(skipped_name(write_key, nonce), str(self.state().table_id), None, skipped=True)
        if self._live is not None:
            published = snapshots_of(self._live, write_key)
            self._skipped = published & history_of(self._live.metadata, self._name.target)
            if gone := published & left_behind(self._live.metadata, self._name.target):
                _log.warning(
                    "%s: the write is committed, so it is skipped, but snapshot %s is no longer in the history of %s;"
                    " its rows may not be there. To write them again, use a new clientToken",
                    *(self._name, min(gone), self._name.target),
                )

    def check_skipped(self) -> None:
        """Raise `NotCommittedError` if the target was set back to before the write since the skipped block began.

        Iceberg's procedures for that change the table at once, also while a block is open.
        """
        if not self._skipped or (table := self._pointer.read()) is None:
            return
        snapshots = {snapshot["snapshot-id"] for snapshot in table.metadata.get("snapshots") or ()}
        gone = (self._skipped & snapshots) - history_of(table.metadata, self._name.target)
        if gone:
            raise NotCommittedError(
                f"{self._name} does not show snapshot {min(gone)} of this write any more: an earlier attempt has"
                f" committed it, and {self._name.target} was set back while this block was open. Move it there again"
                " (CALL system.cherrypick_snapshot), and set a table back before the block, not in it"
            )

    def _open(self, attempt: str, table_id: str, until_ms: int | None, *, skipped: bool = False) -> None:
        latest_ms = epoch_ms() + DECIDED_MS  # a fence lives a day longer than that, whatever the deadline is
        until_ms = latest_ms if until_ms is None else min(until_ms, latest_ms)
        self.begin_group(f"safewriter-{attempt}")
        for key, value in {"": "io.soal.iceberg.StagingCatalog", ".cache-enabled": "false"}.items():
            self.spark.conf.set(f"{_CATALOG}{key}", value)
        self._staging = self._java.open(
            *self._table,
            self._name.target,
            attempt,
            table_id,
            None if self._live is None else self._live.location,
            until_ms,
            "" if self._journal is None else self._journal[0],
            skipped,
        )
        self.on_restore(self._staging.shut)
        self.table = self._name.staged(attempt)

    @property
    def has_begun(self) -> bool:
        """Whether statements may have used the block's table."""
        return self._staging is not None

    def has_written(self) -> bool:
        """Return whether a statement has staged rows, or they were sent."""
        try:
            return self._sent or bool(self._staging.isStaged())
        except (Py4JJavaError, CapturedException) as error:
            if _thrown(error)[0] == _ELSEWHERE:
                return True
            raise

    def report(self) -> StagingState:
        """Return whether the publication was sent, and which statements have written past the block."""
        return StagingState(passed=self._sent, answered=self._answered, mark=self._mark, strays=self._strays)

    # -- the end -----------------------------------------------------------------------------------------------------

    def shut(self, reason: str) -> None:  # noqa: ARG002 - as above
        """Refuse statements that begin from now on."""
        if self._staging is not None and (statement := self._staging.shut()) is not None:
            self._strays = f"{statement}. {_STRAY_CURE}"

    def publish(self) -> None:
        """Commit the transaction, once. Raises `ConflictError` if Iceberg refused it, and `NotCommittedError` if a
        statement has written past the block. After a `StoreError` only the table shows whether it arrived.
        """
        if self._sent:
            return
        if self._strays is not None:
            raise NotCommittedError(f"{self._name} does not hold this block's write: {self._strays}")
        try:
            if not self._staging.isStaged():
                return
            if self._journal is not None:
                journal.append(self._journal[0], "commit_passed", nonce=self._journal[1])
            self._sent, self._answered = True, False
            self._mark = self._staging.publish()
            self._answered = True
        except (Py4JJavaError, CapturedException) as error:
            kind, text = _thrown(error)
            self._answered = self._answered or kind in _REFUSED
            if kind in _REFUSED or (kind in _GONE and not self._sent):
                raise ConflictError(f"{self._name} does not hold this block's write: {text}") from error
            if kind == _ELSEWHERE:
                raise NotCommittedError(f"{self._name} does not hold this block's write: {text}") from error
            denied = kind in _DENIED and not self._sent  # a sent commit may have landed
            raise StoreError(f"{self._name}: {kind}: {text}", denied=denied) from error
        finally:
            self._refresh()

    def _refresh(self) -> None:
        """Let the session see the publication: Iceberg's catalog in Spark caches tables, and Spark the frames that a
        script has cached. A failure does not change the verdict: the table may be gone, or its catalog may not answer.
        """
        try:
            if not self._staging.isShown(*self._table):
                self.spark.catalog.refreshTable(self._name.quoted)
        except (Py4JError, PySparkException) as error:
            _log.warning("%s: the session may show the table as it was before: %s", self._name, error)


def _thrown(error: Py4JJavaError | CapturedException) -> tuple[str, str]:
    """Return the simple name of the class that Java has thrown, and its message."""
    thrown: Any = next(thrown_by(error), None)
    return str(thrown.getClass().getSimpleName()), str(thrown.getMessage())
