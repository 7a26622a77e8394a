"""The Spark side of a build: it writes shards to unreferenced paths. `success()` publishes those of a guarded one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.deadline import epoch_ms
from safewriter.errors import NotCommittedError
from safewriter.identity import canonical_table
from safewriter.objects.s3 import open_store
from safewriter.objects.store import StoreError
from safewriter.record import journal
from safewriter.snapshots.errors import ManifestPublishError, PublishCurrentError
from safewriter.snapshots.settle.table import DECIDED_MS, name_of, names_of
from safewriter.snapshots.write.publish import Base, Publisher
from safewriter.tables.session import TableState
from safewriter.tables.spark import SparkScope

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.errors import SafeWriterError
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.settle.leftovers import BuildId
    from safewriter.snapshots.write.gate import Gate
    from safewriter.tables.session import BlockReport, Opening

__all__ = ["BuildScope", "PublicationState", "SnapshotSession"]


@dataclass(frozen=True, slots=True)
class PublicationState:
    """`passed`: the build has sent its publication. `answered`: S3 has answered. `_CURRENT` has the outcome."""

    passed: bool
    answered: bool
    noted: bool = False
    lost: None = None
    strays: None = None

    def error_of(self, error: Exception) -> SafeWriterError | None:  # noqa: ARG002 - of the protocol
        """Return None: the guard refuses nothing before `success()`."""
        return None


class BuildScope(SparkScope):
    """The session of one build below one prefix. `gate`: None if its tasks run on other machines."""

    def __init__(self, spark: SparkSession, table: str, gate: Gate | None) -> None:
        super().__init__(spark, table)
        self._gate = gate

    def shut(self, reason: str) -> None:  # noqa: ARG002 - of the protocol
        """Let no task begin an upload any more."""
        if self._gate is not None:
            self._gate.shut()

    def wait_until_quiet(self, patience_s: float) -> bool:
        """Wait until no task uploads any more, behind `shut`; return False if `patience_s` passed first, or if a task
        that Spark has killed or repeated on another machine may still do so.
        """
        until_s = time.monotonic() + patience_s
        is_quiet = super().wait_until_quiet(patience_s)
        if self._gate is None:
            return is_quiet and not self.has_lost_tasks()
        return self._gate.wait_until_empty(until_s - time.monotonic()) and is_quiet


class SnapshotSession(BuildScope):
    """The session of a guarded build. `token`: the token of its turn, if any."""

    def __init__(self, spark: SparkSession, table: str, names: BuildId, token: int | None, gate: Gate | None) -> None:
        super().__init__(spark, table, gate)
        self.publisher = Publisher(open_store(canonical_table(table)))
        self.names, self._token = names, token
        self._base = Base(None, None)
        self._staged: Manifest | None = None
        self._name = ""
        self._until_ms = 0
        self._journal: tuple[str, str] | None = None
        self._begun = False
        self._sent = False
        self._answered = True

    @property
    def base(self) -> Base:
        """The `_CURRENT` that the build began with."""
        return self._base

    def verify(self) -> None:
        """Do nothing: a build has no requirements of the session."""

    def state(self) -> TableState:
        """Read `_CURRENT`. In a turn, write its token there first: then an earlier holder cannot publish any more."""
        self._base = self.publisher.base(self._token)
        return TableState(self._base.version, None, (), self.names.document())

    def named_since(self, write_key: str) -> int | None:
        """Return 0 if `_CURRENT` names an attempt of the write, published or fenced; else None."""
        current = self._base.current
        return 0 if current is not None and names_of(current, write_key) else None

    def begin(self, opening: Opening) -> None:
        """Read `_CURRENT` as the base, and put the build's jobs into a group."""
        attempt = opening.document.attempt
        self._name = name_of(attempt)
        latest_ms = epoch_ms() + DECIDED_MS
        self._until_ms = latest_ms if opening.latest_start_ms is None else min(opening.latest_start_ms, latest_ms)
        if opening.journal:
            self._journal = opening.journal, opening.document.owner
        self._begun = True
        self._base = self.publisher.base(self._token)  # settling an earlier attempt has changed it
        self.begin_group(f"safewriter-{self._name}")

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Do nothing: the caller builds nothing."""

    @property
    def has_begun(self) -> bool:
        """Whether the build may have written shards."""
        return self._begun

    def stage(self, manifest: Manifest) -> None:
        """Set the snapshot that `success()` publishes."""
        self._staged = manifest

    def has_written(self) -> bool:
        """Return whether there is a snapshot to publish, or one was sent."""
        return self._sent or self._staged is not None

    def report(self) -> PublicationState:
        """Return whether the publication was sent, and answered."""
        return PublicationState(passed=self._sent, answered=self._answered)

    def may_have_left_files(self, report: BlockReport) -> bool:  # noqa: ARG002 - as above
        """Return True: repeated or speculative tasks may have left shards that no result names."""
        return True

    def is_outlived(self) -> bool:
        """Return False: the build has waited for its job, and then for the job's losing tasks."""
        return False

    def publish(self) -> None:
        """Publish the staged snapshot, once. Raises `PublishConflictError` if another build was faster. After a
        `StoreError` only `_CURRENT` shows whether the publication landed.
        """
        if self._sent or self._staged is None:
            return
        written = self.publisher.write_manifest(self._staged, self._base, token=self._token)
        if epoch_ms() >= self._until_ms:
            raise NotCommittedError(f"{self.table}: the time for a publication is over, so nothing was published")
        if self._journal is not None:
            journal.append(self._journal[0], "commit_passed", nonce=self._journal[1])
        self._sent, self._answered = True, False
        try:
            self.publisher.point(written, self._staged, self._base, token=self._token, attempt=self._name)
        except PublishCurrentError as error:
            raise StoreError(str(error)) from error
        except ManifestPublishError:
            self._sent, self._answered = False, True
            raise
        except BaseException as error:
            self._answered = isinstance(error, Exception)
            raise
        self._answered = True
