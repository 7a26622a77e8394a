"""The Spark side of a guarded Delta block: checks before it, settings inside it, their restoration after it.

`tables/spark.py` does the part that all formats share; this adds Delta's gate, which lives in the log store.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import BlockOpenError, UnguardedSessionError, UnsupportedError, UsageError
from safewriter.identity import canonical_table
from safewriter.objects.s3 import custom_endpoint
from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.record.document import CommitPoint
from safewriter.session import LOG_STORE
from safewriter.tables.delta.gate import SKIPPED, GateState, GateStatus, refusal_in
from safewriter.tables.delta.undo import table_obstacle
from safewriter.tables.session import TableState
from safewriter.tables.spark import SparkScope
from safewriter.tables.thrown import class_of, condition_of, of_existing_table, thrown_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.tables.session import BlockReport, Opening

__all__ = ["DeltaSession"]

_log = logging.getLogger(__name__)
_GATE_PROTOCOL: Final = 10
_NO_BUCKET: Final = "org.apache.hadoop.fs.s3a.UnknownStoreException"
_CATALOG_MANAGED: Final = frozenset(
    {"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommit-dev"}
)
_MANAGED_ERRORS: Final = frozenset(
    {
        "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
        "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
    }
)
"""Delta's names of the errors by which it refuses to read a log to which a catalog commits."""


class DeltaSession(SparkScope):
    """One guarded block on one table in one Spark session."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        super().__init__(spark, table)
        self._gates = self.java_class("io.soal.logstore.Gate")
        self._gate: Any = None
        self._before: Any = None
        self._reads_back = False

    # -- before ------------------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Check that this session commits to the table through the gate; `UnguardedSessionError` says what to add."""
        from py4j.protocol import Py4JError

        try:
            protocol = int(self._gates.protocol())
        except Py4JError:
            raise self._unguarded(f"the class {LOG_STORE} is not on the driver's class path") from None
        if protocol != _GATE_PROTOCOL:
            raise self._unguarded(
                f"soal-logstore.jar speaks protocol {protocol}, this SafeWriter speaks {_GATE_PROTOCOL}"
            )
        state = parsed(self.java_class("io.soal.logstore.Surroundings").of(self.jspark, self.table))
        if "key" in state:
            raise self._unguarded(f"{state['key']} is {state['found'] or 'not set'}", state["key"])
        if state["busy"]:
            raise BlockOpenError
        # A settler reads through this process's own client, so the gate's own read counts only at the same endpoint.
        self._reads_back = state["endpoint"].rstrip("/") == (custom_endpoint() or "").rstrip("/")

    def _unguarded(self, problem: str, key: str = "") -> UnguardedSessionError:
        if not key.endswith(".impl"):
            key = f"spark.delta.logStore.{self.table.split('://', 1)[0]}.impl"
        return UnguardedSessionError(
            f"SafeWriter cannot guard this session: {problem}. Build it by safewriter.configure_spark(builder): it sets"
            f" {key} to {LOG_STORE}, and adds the jar of this class; give it to spark-submit by --jars"
        )

    def state(self) -> TableState:
        """Read the table's present state (one LIST on a table that this session knows)."""
        from py4j.protocol import Py4JJavaError

        try:
            self._before = self.java_class("io.soal.logstore.LatestSnapshot").of(self.jspark, self.table)
        except Py4JJavaError as error:
            if any(condition_of(java) in _MANAGED_ERRORS for java in thrown_by(error)):
                raise self._managed("catalogManaged") from error
            if class_of(error.java_exception) == _NO_BUCKET:
                raise UsageError(
                    f"nothing was written: the bucket of {self.table} does not exist; create it, or correct its name"
                ) from error
            raise
        state = parsed(self._before.json())
        if state["version"] < 0:
            return TableState(-1, None, (), {})
        features = tuple(sorted(set(state["features"])))
        if managed := sorted(_CATALOG_MANAGED.intersection(features)):
            raise self._managed(", ".join(managed))
        return TableState(state["version"], state["id"], features, state["properties"], modified_ms=state["modifiedMs"])

    def named_since(self, write_key: str) -> int | None:
        """Return the first of the table's last 100 versions that names the write; None if none does.

        Raises `StoreError` if one of them cannot be read. A session that writes the table block after block sends no
        request.
        """
        from py4j.protocol import Py4JJavaError

        try:
            version = self.java_class("io.soal.logstore.LastVersions").firstOf(self.jspark, self._before, write_key)
        except Py4JJavaError as error:
            raise StoreError(f"{self.table}: {error.java_exception.getMessage()}") from error
        return None if version < 0 else int(version)

    def _managed(self, features: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.table}: a catalog commits to this table ({features}), past every gate of ours. Write it without"
            " SafeWriter, or keep the guarded data in a table of its own that no catalog commits to"
        )

    def undo_obstacle(self, before: TableState) -> str | None:
        """Return why a commit to this table could not be undone; None if it could be."""
        obstacle = table_obstacle(before.features, before.properties)
        return None if obstacle is None else f"it {obstacle}"

    # -- inside ------------------------------------------------------------------------------------------------------

    def begin(self, opening: Opening) -> None:
        """Open the gate and mark everything that the block's statements will write."""
        document = opening.document
        self._open(
            document.write_key,
            document.epoch,
            {
                "claimedAt": document.attempt.version_before,
                "latestStartMs": opening.latest_start_ms or 0,
                # The gate writes the note through the same file system as the table.
                "note": opening.note.replace("s3://", self.table.split("://", 1)[0] + "://", 1),
                "journal": opening.journal or "",
                "nonce": document.owner,
                "filePrefix": document.attempt.prefix,
                "undoable": document.commit_point is CommitPoint.SUCCESS,
                "skipped": False,
            },
        )

    def _open(self, write_key: str, epoch: int, block: dict[str, str | int]) -> None:
        """Open the gate of a block (`Block.java` lists its fields), which also marks the session."""
        place = {"table": self.table, "key": write_key, "epoch": epoch}
        self._gate = self._gates.open(self.jspark, json.dumps({**place, **block}))
        self.on_restore(self._gate.close)
        self.begin_group(f"safewriter-{write_key}-{epoch}-{block['nonce']}")

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Let Delta's own transaction rule skip a write that landed before; if Delta does not, the gate refuses it."""
        self._open(
            write_key,
            1,
            {
                "claimedAt": -1,
                "latestStartMs": 0,
                "note": "",
                "journal": "",
                "nonce": nonce,
                "filePrefix": f"{write_key}-0-{nonce}-",  # so that the log store recognises a late file
                "undoable": False,
                "skipped": True,
            },
        )

    def was_skipped(self, error: Exception) -> bool:
        """Return whether `error` only means that the write was skipped: Delta does not skip a statement by itself if it
        creates a table, nor if Delta has forgotten our transaction.
        """
        refused = refusal_in(error)
        if refused is not None:
            return refused[1].endswith(SKIPPED)
        found = of_existing_table(error)
        return found is not None and self._is_about_our_table(found)

    def _is_about_our_table(self, java: Any) -> bool:  # noqa: ANN401 - of Py4J, which has no types
        path = canonical_table(self.table)
        try:
            named = {str(name): str(value) for name, value in java.getMessageParameters().items()}
            place = named.get("path") or named.get("tableLocation")  # a whole value: another table's name may hold ours
            if place is None:
                place = self.spark.sql(f"DESCRIBE DETAIL {named['relationName']}").collect()[0]["location"]
            return canonical_table(place) == path
        except Exception:  # noqa: BLE001 - a name that cannot be resolved, for any reason, is not that of our table
            return False

    @property
    def has_begun(self) -> bool:
        """Whether the gate was opened."""
        return self._gate is not None

    def has_written(self) -> bool:
        """Return whether a commit was sent: a statement makes one, also if it changes nothing."""
        return self.report().passed

    def report(self) -> GateState:
        """Return the gate's record of the block."""
        gate = self._gate
        report = GateState.parse(gate.seen())
        if not self._reads_back or report.status is not GateStatus.LANDED or (landed := gate.landed()) is None:
            return report
        commit = parsed(landed)
        return replace(report, body=commit["body"].encode(), added_bytes=commit["bytes"])

    # -- the end -----------------------------------------------------------------------------------------------------

    def shut(self, reason: str) -> None:
        """Let no commit through any more."""
        self._gate.shut(reason)

    def may_have_left_files(self, report: BlockReport) -> bool:
        """Return whether the block may have left files that no commit refers to: all of its files, or those of a failed
        task, of a refused statement, or of one that lost its slot.
        """
        if not isinstance(report, GateState) or report.status is not GateStatus.LANDED:
            return True
        if report.tries > 1 or report.refusal:
            return True
        if self.is_outlived():
            return True
        if not report.added_bytes:
            return True  # an append without rows writes an empty file, which its commit does not name
        jobs = self.java_class("io.soal.logstore.BlockJobs")
        return not jobs.allTasksSucceeded(self.jspark, self._group)

    def is_outlived(self) -> bool:
        """Return whether a statement that began in the block may still run, and need the files that it has written."""
        try:
            return self._gate is not None and bool(self._gate.isOutlived())
        except Exception as error:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone; the verdict stands
            _log.warning("%s: Java does not answer (%s); a later settler removes leftover files", self.table, error)
            return True
