"""The Spark side of a guarded Iceberg block: its statements write to a branch of its own, and read from it.

Spark is told by `spark.wap.branch`, which tables with `write.wap.enabled` obey. (Not `spark.wap.id`: under that a
DELETE of whole files, which Spark commits without a job, would go straight to main, and a block could not read what it
wrote.)
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType

from safewriter import journal
from safewriter.deadline import epoch_ms
from safewriter.errors import BlockOpenError, UnguardedSessionError, UnsupportedError
from safewriter.objects.s3 import table_store
from safewriter.objects.store import StoreError
from safewriter.settings import boolean
from safewriter.tables.iceberg.catalog import OneTable
from safewriter.tables.iceberg.left import Left
from safewriter.tables.iceberg.leftovers import remove_left
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.publishing import make_branch
from safewriter.tables.iceberg.settings import of_session, without_secrets
from safewriter.tables.iceberg.staging import EPOCH, WRITE, ancestors, branch_of, head_of
from safewriter.tables.session import TableState
from safewriter.tables.spark import SparkScope
from safewriter.tables.table import RetentionGapError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table.refs import SnapshotRef
    from pyspark.sql import SparkSession

    from safewriter.errors import SafeWriterError
    from safewriter.tables.session import Opening, Seen

__all__ = ["IcebergSession", "StagingState"]

_log = logging.getLogger(__name__)
_BRANCH: Final = "spark.wap.branch"
_WAP_ID: Final = "spark.wap.id"
_PROPERTY: Final = "spark.sql.iceberg.snapshot-property."
_ENABLED: Final = "write.wap.enabled"
# What the catalog's `io-impl`, if it is one of ours, puts before the names of the files that tasks write.
_MARK: Final = "spark.safewriter.mark"
_MARKED_IO: Final = ("io.soal.iceberg.MarkedFileIO", "io.soal.iceberg.MarkedS3FileIO")
_TRIES_MAX: Final = 20
_FORMAT_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class StagingState:
    """What is known of the block's staging: nothing, but that staging changes nothing that a reader of main sees."""

    passed: bool
    answered: bool = True
    noted: bool = False

    def error_of(self, error: Exception) -> SafeWriterError | None:
        """Return None: nothing is refused on the way, the table tells afterwards."""
        del error
        return None


class IcebergSession(SparkScope):
    """One guarded block on one table of a catalog."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self._name = TableName.parse(table)
        super().__init__(spark, self._name.table)
        self._catalog = of_session(self._name.catalog, spark.conf.getAll)
        self._one = OneTable(self._name, self._catalog, table_store)
        self._begun = False
        self._answered = False

    @property
    def secrets(self) -> Mapping[str, str]:
        """All of the catalog's properties, as the session has them."""
        return self._catalog

    # -- before ------------------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Make sure that nobody else stages in this session."""
        for key in (_BRANCH, _WAP_ID):
            if (found := self.spark.conf.get(key, None)) is None:
                continue
            if str(found).startswith("sw-"):
                raise BlockOpenError("another SafeWriter block is open on this Spark session; end it first")
            raise UnguardedSessionError(f"{key} is set to {found!r}: the block stages by itself; unset it first")

    def state(self) -> TableState:
        """Look at the table in its catalog, which may not have it yet."""
        catalog = without_secrets(self._catalog)
        try:
            metadata = self._one.load().metadata
        except RetentionGapError:
            self._find_target({})
            return TableState(version=-1, table_id=None, features=(), properties={}, catalog=catalog)
        if metadata.format_version > _FORMAT_MAX:
            raise UnsupportedError(
                f"{self._name} is of format version {metadata.format_version}, which pyiceberg reads and cannot write,"
                f" so nobody could settle it without a JVM; guarded are tables up to version {_FORMAT_MAX}"
            )
        if not self._is_enabled(metadata.properties) and not boolean(os.environ, "SW_ICEBERG_SET_WAP", default=True):
            raise UnsupportedError(
                f"{self._name} does not allow staging, and SW_ICEBERG_SET_WAP=false forbids to change that; set it by"
                f" hand: ALTER TABLE {self._name.table} SET TBLPROPERTIES ('{_ENABLED}' = 'true')"
            )
        self._find_target(metadata.refs)
        return TableState(
            version=head_of(metadata, self._name.target) or 0,
            table_id=str(metadata.table_uuid),
            features=(f"v{metadata.format_version}",),
            properties={},
            catalog=catalog,
        )

    def _find_target(self, refs: Mapping[str, SnapshotRef]) -> None:
        target = self._name.target
        found = refs.get(target)
        if target != MAIN_BRANCH and (found is None or found.snapshot_ref_type is not SnapshotRefType.BRANCH):
            raise UnsupportedError(
                f"{self._name.table} has {'no branch' if found is None else 'a tag, and no branch,'} called {target!r};"
                f" create it first: ALTER TABLE {self._name.table} CREATE BRANCH `{target}`"
            )

    @staticmethod
    def _is_enabled(properties: dict[str, str]) -> bool:
        return properties.get(_ENABLED, "").lower() == "true"

    def undo_obstacle(self, before: TableState) -> str | None:
        """Return None: what is staged can always be dropped, and what was created by itself can be taken back."""
        del before
        return None

    # -- inside ------------------------------------------------------------------------------------------------------

    def begin(self, opening: Opening) -> None:
        """Send all that the block's statements write to the attempt's own branch; a creation goes to main, marked."""
        document = opening.document
        if opening.journal:  # the supervisor cannot know whether something is staged: it has to look
            journal.append(opening.journal, "commit_passed", nonce=document.owner)
        branch = branch_of(document.attempt)
        self._begin(branch)
        if document.attempt.version_before < 0:
            self._answered = True  # a creation that comes late is no branch, and no clean-up could take it away
        else:
            self._make(branch, document.attempt.table_id, document.attempt.version_before)
        self._stage(branch, document.write_key, str(document.epoch))

    def was_skipped(self, error: Exception) -> bool:  # noqa: ARG002 - of the protocol
        """Nothing fails for it: the block has a branch of its own."""
        return False

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Let the block write to a branch that nobody will publish, and drop it at its end."""
        try:
            base = head_of(self._one.load().metadata, self._name.target) or 0
        except RetentionGapError as error:
            raise UnsupportedError(
                f"{self._name} is gone, and this run has written it already; a new clientToken makes a new run"
            ) from error
        left = Left(f"{write_key[:15]}-skipped-{nonce}", None, base, f"{write_key}-skipped", "0", epoch_ms())
        self.on_restore(lambda: self._drop(left))
        self._begin(left.branch)
        self._make(left.branch, None, base)
        self._stage(left.branch, left.write_key, left.epoch)

    def _drop(self, left: Left) -> None:
        remove_left(self._one, left, lambda: True)

    def _make(self, branch: str, table_id: str | None, base: int) -> None:
        self._answered = self._make_branch(branch, table_id, base) > 0
        self._refresh()  # Iceberg's catalog in Spark keeps tables for half a minute
        self._mark_manifests(f"{branch}-")

    def _make_branch(self, branch: str, table_id: str | None, base: int) -> int:
        """Return the snapshot on which the branch begins; 0 for an empty table, on which its first commit makes it."""
        for _ in range(_TRIES_MAX):
            table = self._one.load(table_id)
            head = head_of(table.metadata, self._name.target)
            if (made := head_of(table.metadata, branch)) is not None:
                return made  # the answer was lost, and the client has asked again by itself
            if all(snapshot.snapshot_id != base for snapshot in ancestors(table.metadata, head)):
                base = head or 0  # the attempt before this one was undone while this one was claimed
            missing = not self._is_enabled(table.metadata.properties)
            if missing:
                _log.warning("setting %s on %s, so that it can be staged (SW_ICEBERG_SET_WAP)", _ENABLED, self._name)
            if make_branch(self._one, table, branch, base, {_ENABLED: "true"} if missing else {}):
                return base
        raise StoreError(f"{self._name}: the branch {branch} could not be made in {_TRIES_MAX} tries")

    def _mark_manifests(self, mark: str) -> None:
        """Let the driver, too, put the mark before the names of what it writes."""
        util = self.java_class("org.apache.iceberg.spark.Spark3Util")
        files = util.loadIcebergTable(self.jspark, self._name.quoted).io()
        if files.getClass().getName() in _MARKED_IO:
            self.on_restore(lambda: files.setMark(None))
            files.setMark(mark)

    def _begin(self, branch: str) -> None:
        self._begun = True
        self.begin_group(f"safewriter-{branch}")

    def _stage(self, branch: str, write_key: str, epoch: str) -> None:
        self.on_restore(self._refresh)
        marks = {f"{_PROPERTY}{WRITE}": write_key, f"{_PROPERTY}{EPOCH}": epoch, _MARK: f"{branch}-"}
        for key, value in {_BRANCH: branch, **marks}.items():
            self.set(key, value)

    def _refresh(self) -> None:
        self.spark.catalog.refreshTable(self._name.quoted)

    @property
    def has_begun(self) -> bool:
        """Whether something may have been sent to the catalog: the branch, or what statements stage on it."""
        return self._begun

    def seen(self) -> StagingState:
        """Say that something may have been staged. Once there is a branch, what comes after its drop is refused; on an
        empty table, or while the branch itself is in doubt, one may come yet.
        """
        return StagingState(passed=self._begun, answered=self._answered)

    # -- the end -----------------------------------------------------------------------------------------------------

    def shut(self, reason: str) -> None:
        """Nothing to shut: what is staged from now on is published by nobody."""

    def may_have_left_files(self, seen: Seen) -> bool:
        """Tell whether a task has failed: then its files may lie about, and no snapshot names them."""
        del seen
        return not self.all_tasks_succeeded()
