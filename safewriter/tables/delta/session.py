"""The Spark side of a guarded Delta block: what is looked at before, set inside, and put back after.

The only module of SafeWriter that talks to a JVM, through py4j on the driver; any master will do.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import BlockOpenError, DeadlineError, SupersededError, UnguardedSessionError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from safewriter.errors import SafeWriterError

__all__ = ["DeltaSession", "GateState", "MicroBatch", "TableState"]

LOG_STORE: Final = "io.soal.logstore.ConditionalS3LogStore"
_GATE_PROTOCOL: Final = 4
_TXN_APP: Final = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_TXN_RESET: Final = "spark.databricks.delta.write.txnVersion.autoReset.enabled"
_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"
_SELF_COMMIT: Final = "spark.databricks.delta.commit.idempotencyCheck.enabled"
# The gate adds the transaction action behind Delta's back; a checksum that lists transactions would lack ours.
_TXN_IN_CHECKSUM: Final = "spark.databricks.delta.setTransactionsInCrc.writeOnCommit"
_AUTO_COMPACT: Final = "spark.databricks.delta.autoCompact.enabled"
# Internal to Delta and static, so it is set on the session state. Tested with every Delta release that is pinned here.
_FILE_PREFIX: Final = "spark.databricks.delta.testOnly.dataFileNamePrefix"
_GROUP: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
# What a stream tells the threads of its batches (StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY).
_MICRO_BATCH: Final = ("sql.streaming.queryId", "streaming.sql.batchId")
_CATALOG_MANAGED: Final = frozenset(
    {"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommit-dev"}
)
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class TableState:
    """A table before a write. `version` is -1 if there is none; `features` are those of its protocol.

    `actions`: its protocol and metaData as they stand in the log, a line each.
    """

    version: int
    table_id: str | None
    features: tuple[str, ...]
    properties: dict[str, str]
    actions: str = ""

    @property
    def append_only(self) -> bool:
        """Whether the table forbids removals, and with them every undo."""
        return self.properties.get("delta.appendOnly") == "true"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The batch of a stream that this thread works on."""

    query_id: str
    batch_id: str


@dataclass(frozen=True, slots=True)
class GateState:
    """What the gate has seen. `status` is none, in flight, landed or unknown; `refusal` is `code: message` or empty.

    `noted`: it has put a note into the checkpoint bucket.
    """

    status: str
    passed: bool
    version: int
    refusal: str
    stray: str
    noted: bool = False

    @property
    def answered(self) -> bool:
        """Whether every commit that was sent has had its answer."""
        return self.status in ("none", "landed")

    def error_of(self, error: Exception) -> SafeWriterError | None:
        """Return the refusal as a typed error if that is what `error` is about; None for an error of another kind."""
        return self.error() if f"SafeWriter [{self.refusal.partition(': ')[0]}]" in str(error) else None

    def error(self) -> SafeWriterError | None:
        """Return what the gate has refused, as an error that says what to do; None if it refused nothing."""
        code, _, text = self.refusal.partition(": ")
        if code in ("operation", "second", "recreated"):
            return UnsupportedError(text)
        if code == "session":
            return UnguardedSessionError(text)
        if code == "fenced":
            return SupersededError(text)
        return DeadlineError(text) if code == "late" else None


class DeltaSession:
    """One guarded block on one table in one Spark session."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        if spark._jvm is None:  # noqa: SLF001 - py4j is the only way to Delta's own log; Spark Connect has none
            raise UnguardedSessionError(
                "this session is a Spark Connect client; SafeWriter needs the driver's own session"
            )
        self._spark = spark
        self._jspark: Any = spark._jsparkSession  # noqa: SLF001
        self._table = table
        self._gates = self._class("io.soal.logstore.Gate")
        self._gate: Any = None
        self._group = ""
        self._restore: list[Callable[[], None]] = []

    def _class(self, name: str) -> Any:  # noqa: ANN401 - py4j has no types
        from py4j.java_gateway import JavaClass

        # By its full name: `jvm.io.soal...` would ask the JVM about each part of it, a few milliseconds every time.
        return JavaClass(name, self._spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]  # noqa: SLF001

    # -- before ------------------------------------------------------------------------------------------------------

    def micro_batch(self) -> MicroBatch | None:
        """Return the stream's batch if this runs in `foreachBatch`."""
        query_id, batch_id = (self._spark.sparkContext.getLocalProperty(name) for name in _MICRO_BATCH)
        return MicroBatch(query_id, batch_id) if query_id and batch_id else None

    def verify(self) -> None:
        """Make sure that this session commits to the table through the gate; `UnguardedSessionError` says what to
        add.
        """
        from py4j.protocol import Py4JError

        scheme = self._table.split("://", 1)[0]
        key = f"spark.delta.logStore.{scheme}.impl"
        conf = self._jspark.sparkContext().conf()  # PySpark's own getConf() copies every setting, one by one
        found = conf.get(key, None) or conf.get(key.removeprefix("spark."), None)
        other = conf.get("spark.delta.logStore.class", None)
        if found != LOG_STORE or other not in (None, LOG_STORE):
            what = f"{key} is {found or 'not set'}" if found != LOG_STORE else f"spark.delta.logStore.class is {other}"
            raise UnguardedSessionError(_remedy(what, key))
        try:
            protocol = int(self._gates.protocol())
        except Py4JError:
            raise UnguardedSessionError(
                _remedy(f"the class {LOG_STORE} is not on the driver's class path", key)
            ) from None
        if protocol != _GATE_PROTOCOL:
            what = f"soal-logstore.jar speaks protocol {protocol}, this SafeWriter speaks {_GATE_PROTOCOL}"
            raise UnguardedSessionError(_remedy(what, key))
        if self._gates.busy(self._jspark):
            raise BlockOpenError("another SafeWriter block is open on this Spark session; end it first")

    def state(self) -> TableState:
        """Look at the table as it is now (one LIST on a table that this session knows)."""
        log = self._log()
        nothing = self._class("scala.Option").empty()
        stale_is_fine = False
        snapshot = log.update(stale_is_fine, nothing, nothing)
        version = int(snapshot.version())
        if version < 0:
            return TableState(-1, None, (), {})
        lines = (str(snapshot.protocol().json()), str(snapshot.metadata().json()))
        protocol, metadata = json.loads(lines[0])["protocol"], json.loads(lines[1])["metaData"]
        features = tuple(sorted({*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}))
        if managed := sorted(_CATALOG_MANAGED.intersection(features)):
            raise self._managed(", ".join(managed))
        properties = {
            key: value for key, value in metadata.get("configuration", {}).items() if key.startswith("delta.")
        }
        return TableState(version, metadata["id"], features, properties, "".join(f"{line}\n" for line in lines))

    def _log(self) -> Any:  # noqa: ANN401 - a Java object
        from py4j.protocol import Py4JJavaError

        try:
            return self._class("org.apache.spark.sql.delta.DeltaLog").forTable(self._jspark, self._table)
        except Py4JJavaError as error:
            if "CATALOG_MANAGED_TABLE" in str(error.java_exception.getMessage()):
                raise self._managed("catalogManaged") from error
            raise

    def _managed(self, features: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self._table}: a catalog commits to this table ({features}), past every gate of ours. Write it without"
            " SafeWriter, or keep the guarded data in a table of its own that no catalog commits to"
        )

    # -- inside ------------------------------------------------------------------------------------------------------

    def begin(
        self,
        *,
        write_key: str,
        epoch: int,
        nonce: str,
        version_before: int,
        file_prefix: str,
        latest_start_ms: int | None,
        before: str,
        note: str,
        journal: str | None,
    ) -> None:
        """Open the gate and mark everything that the block's statements will write."""
        group = f"safewriter-{write_key}-{epoch}-{nonce}"
        self._gate = self._gates.open(
            self._jspark,
            self._table,
            write_key,
            epoch,
            version_before,
            latest_start_ms or 0,
            before,
            note,
            journal or "",
            nonce,
            file_prefix,
            group,
        )
        self._restore.append(self._gate.close)
        mine: dict[str, object] = {"safewriter": {"key": write_key, "epoch": epoch}}
        if (users := self._spark.conf.get(_METADATA, None)) is not None:
            mine["user"] = users  # the user's own text is kept inside ours
        for key, value in (
            (_TXN_IN_CHECKSUM, "false"),
            (_METADATA, json.dumps(mine)),
            (_SELF_COMMIT, "true"),
            # A second commit would be refused, but only after its data files were written.
            (_AUTO_COMPACT, "false"),
        ):
            self._set(key, value)
        self._set_prefix(file_prefix)
        self._begin_group(group)

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Let Delta's own transaction rule skip a write that landed before, and the gate refuse it should Delta not."""
        self.begin(
            write_key=write_key,
            epoch=1,
            nonce=nonce,
            version_before=-1,
            file_prefix=f"{write_key[:15]}-skipped-",
            latest_start_ms=None,
            before="",
            note="",
            journal=None,
        )
        self._gate.shut("this write was committed by an earlier attempt")
        # Delta skips what is not above the version that the table stores, and 1 is the lowest that there is.
        for key, value in ((_TXN_APP, write_key), (_TXN_VERSION, "1"), (_TXN_RESET, "false")):
            self._set(key, value)

    def _set(self, key: str, value: str) -> None:
        before = self._spark.conf.get(key, None)
        conf = self._spark.conf
        self._restore.append(lambda: conf.unset(key) if before is None else conf.set(key, before))
        conf.set(key, value)

    def _set_prefix(self, value: str) -> None:
        conf = self._jspark.sessionState().conf()
        before = conf.getConfString(_FILE_PREFIX, "")
        self._restore.append(
            lambda: conf.setConfString(_FILE_PREFIX, before) if before else conf.unsetConf(_FILE_PREFIX)
        )
        conf.setConfString(_FILE_PREFIX, value)

    def _begin_group(self, group: str) -> None:
        context = self._spark.sparkContext
        before = {name: context.getLocalProperty(name) for name in _GROUP}

        def restore() -> None:
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None removes it

        self._restore.append(restore)
        self._group = group
        # Without the interrupt the tasks go on, and upload, for seconds after the statement has ended.
        context.setJobGroup(
            group, context.getLocalProperty("spark.job.description") or "SafeWriter", interruptOnCancel=True
        )

    @property
    def has_begun(self) -> bool:
        """Whether the gate was opened."""
        return self._gate is not None

    def gate(self) -> GateState:
        """Ask the gate what it has seen."""
        gate = self._gate
        return GateState(
            gate.status(), bool(gate.passed()), int(gate.version()), gate.refusal(), gate.stray(), bool(gate.noted())
        )

    # -- the end -----------------------------------------------------------------------------------------------------

    def shut(self, reason: str) -> None:
        """Let no commit through any more."""
        self._gate.shut(reason)

    def cancel(self) -> None:
        """Cancel the block's jobs, those that it would still start included."""
        self._jspark.sparkContext().cancelJobGroupAndFutureJobs(self._group)

    def wait_until_quiet(self, patience_s: float) -> bool:
        """Wait until no job of the block and no task at all runs here; False if patience ended first."""
        tracker = self._spark.sparkContext.statusTracker()
        executors = self._jspark.sparkContext().statusTracker()
        until_s = time.monotonic() + patience_s
        while time.monotonic() < until_s:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
            running = any(job is not None and job.status == "RUNNING" for job in jobs)
            if not running and not any(info.numRunningTasks() for info in executors.getExecutorInfos()):
                return True
            time.sleep(_POLL_S)
        return False

    def may_have_left_files(self, seen: GateState) -> bool:
        """Tell whether files of ours may lie about that no commit refers to: of a task that failed, or all of them."""
        if seen.status != "landed":
            return True  # an empty append writes an empty file
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        if not jobs or any(job is None or job.status != "SUCCEEDED" for job in jobs):
            return True
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        # A skipped stage has no record.
        return any(stage is not None and stage.numFailedTasks for stage in stages)

    def restore(self) -> None:
        """Put the session back as it was, in reverse order, whatever fails on the way."""
        failure: Exception | None = None
        while self._restore:
            undo = self._restore.pop()
            try:
                undo()
            except Exception as error:  # noqa: BLE001 - each of the others must have its turn
                failure = error
        if failure is not None:
            raise failure


def _remedy(what: str, key: str) -> str:
    return (
        f"SafeWriter cannot guard this session: {what}. Add two lines where the session is built:\n"
        f"    .config({key!r}, {LOG_STORE!r})\n"
        "    .config('spark.driver.extraClassPath', '<path>/soal-logstore.jar')  # or spark.jars"
    )
