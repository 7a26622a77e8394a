"""The work of a guarded block on its Spark session that all table formats share: settings, job group, waiting."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import UnguardedSessionError, UsageError
from safewriter.tables.release import check_spark
from safewriter.tables.session import MicroBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from safewriter.tables.session import BlockReport, TableState

__all__ = ["SparkScope"]

_GROUP: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
# Properties of the threads of a stream's batches (StreamExecution.QUERY_ID_KEY, MicroBatchExecution.BATCH_ID_KEY).
_MICRO_BATCH: Final = ("sql.streaming.queryId", "streaming.sql.batchId")
_POLL_S: Final = 0.02
_RECORDS_WAIT_MS: Final = 50
_IN_A_BATCH: Final = (
    "Open it in foreachBatch itself, or on a thread that foreachBatch starts with its own properties,"
    " Thread(target=pyspark.inheritable_thread_target(spark)(write))"
)


class _Groups:
    """The job groups of the open blocks, with what each block puts back at its end: `_GROUP` of before it.

    Blocks of one thread may end in the order of their opening. The later one then puts back what was before both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: dict[str, dict[str, str | None]] = {}

    def begin(self, group: str, before: dict[str, str | None]) -> None:
        """Note a block's group, and what was before it."""
        with self._lock:
            self._before[group] = before

    def end(self, group: str, now: str | None) -> dict[str, str | None]:
        """Forget a block's group; return what to put back, nothing if its thread is in the group of another block."""
        with self._lock:
            before = self._before.pop(group)
            for other, found in self._before.items():
                if found[_GROUP[0]] == group:
                    self._before[other] = before
            return {} if now in self._before else before


_GROUPS: Final = _Groups()


class SparkScope:
    """One block's access to a session, through py4j on the driver; works with any master."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        if spark._jvm is None:  # noqa: SLF001 - py4j is the only way to the tables' own libraries; Spark Connect has none
            raise UnguardedSessionError(
                "this session is a Spark Connect client; SafeWriter needs the driver's own session"
            )
        from py4j.clientserver import ClientServer

        if not isinstance(spark.sparkContext._gateway, ClientServer):  # noqa: SLF001 - as above
            raise UnguardedSessionError(
                "PYSPARK_PIN_THREAD=false lets Python's threads share those of Java, so that nobody can tell which"
                " thread a write comes from; start the session without it"
            )
        check_spark(spark.version)
        self.spark = spark
        self.table = table
        """The table's name in the block's statements."""
        self.jspark: Any = spark._jsparkSession  # noqa: SLF001
        self._group = ""
        self._restore: list[Callable[[], None]] = []

    @property
    def secrets(self) -> Mapping[str, str]:
        """Empty for a table at a path."""
        return {}

    @property
    def catalog(self) -> dict[str, str]:
        """Empty, as above."""
        return {}

    def java_class(self, name: str) -> Any:  # noqa: ANN401 - py4j has no types
        """Return a Java class by its full name: `jvm.io.soal...` would ask the JVM about each part of it."""
        from py4j.java_gateway import JavaClass

        return JavaClass(name, self.spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]  # noqa: SLF001

    def micro_batch(self) -> MicroBatch | None:
        """Return the stream's batch if this runs in `foreachBatch`; raise `UsageError` if that is unclear."""
        query_id, batch_id = (self.spark.sparkContext.getLocalProperty(name) for name in _MICRO_BATCH)
        if not query_id and threading.current_thread() is threading.main_thread():
            return None  # Spark calls foreachBatch on threads of its own
        if query_id and batch_id:
            return self._running_batch(query_id, batch_id)
        if not self._streams().isEmpty():
            # Named by the run, the write of the next batch would look like this one, and be skipped.
            raise UsageError(
                f"nothing was written: a stream runs, and this thread does not say which of its batches the block on"
                f" {self.table} belongs to. {_IN_A_BATCH}. Write tables outside a stream from the main thread"
            )
        return None

    def _streams(self) -> Any:  # noqa: ANN401 - Java's map
        return self.jspark.sharedState().activeStreamingQueries()

    def _stream(self, query_id: str | None) -> Any:  # noqa: ANN401 - Java's stream
        """Return the running stream of that id, or None."""
        return self._streams().get(self.java_class("java.util.UUID").fromString(query_id))

    def _running_batch(self, query_id: str, batch_id: str) -> MicroBatch:
        """Return the batch that a thread names, if its stream still runs it: a thread may outlive its batch."""
        stream = self._stream(query_id)
        now = None if stream is None else str(stream.getLatestExecutionContext().batchId())
        if now != batch_id:
            where = "has ended" if now is None else f"is at batch {now}"
            raise UsageError(
                f"nothing was written: this thread was started in batch {batch_id} of a stream that {where}, so nobody"
                f" can tell to which batch the block on {self.table} belongs. {_IN_A_BATCH}, anew in each batch"
            )
        return MicroBatch(query_id, batch_id, str(stream.runId()))

    def keep_state(self) -> None:
        """Have the stream write the state of this batch, which a skipped block does not compute."""
        query_id = self.spark.sparkContext.getLocalProperty(_MICRO_BATCH[0])
        self.java_class("io.soal.logstore.StreamState").keep(self._stream(query_id))

    # -- what the block changes, restored at its end ------------------------------------------------------------------

    def on_restore(self, undo: Callable[[], None]) -> None:
        """Have `undo` called when the session is restored."""
        self._restore.append(undo)

    def begin_group(self, group: str) -> None:
        """Put the jobs of this thread into a group of the block's own, until the session is restored."""
        context = self.spark.sparkContext
        # The block may end on another thread, which has properties of its own: a generator, for example.
        properties = self.jspark.sparkContext().getLocalProperties()
        _GROUPS.begin(group, {name: properties.getProperty(name) for name in _GROUP})

        def restore() -> None:
            for name, value in _GROUPS.end(group, properties.getProperty(_GROUP[0])).items():
                if value is None:
                    properties.remove(name)
                else:
                    properties.setProperty(name, value)

        self._restore.append(restore)
        self._group = group
        # Without the interrupt the tasks continue to upload for seconds after the statement has ended.
        context.setJobGroup(
            group, context.getLocalProperty("spark.job.description") or "SafeWriter", interruptOnCancel=True
        )

    def restore(self) -> None:
        """Restore the session in reverse order, also after a failure on the way; then raise the first failure."""
        failure: BaseException | None = None
        while self._restore:
            undo = self._restore.pop()
            try:
                undo()
            except BaseException as error:  # noqa: BLE001 - the others must run, too, also after Ctrl-C
                failure = failure or error
        if failure is not None:
            raise failure

    def undo_obstacle(self, before: TableState) -> str | None:  # noqa: ARG002 - of the protocol
        """Default: a block has nothing to undo before its publication."""
        return None

    def was_skipped(self, error: Exception) -> bool:  # noqa: ARG002 - as above
        """Default: no statement of a skipped block fails because of the skip."""
        return False

    def check_skipped(self) -> None:
        """Default: no statement of a skipped block can take the write back."""

    def publish(self) -> None:
        """Default: each statement commits by itself."""

    def may_have_left_files(self, report: BlockReport) -> bool:  # noqa: ARG002 - as above
        """Default: no settler looks for files of a committed block."""
        return False

    def is_outlived(self) -> bool:
        """Default: as above."""
        return False

    # -- the block's jobs --------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel the block's jobs, also those that it would still start."""
        if not self._is_stopped():
            self.jspark.sparkContext().cancelJobGroupAndFutureJobs(self._group)

    def _is_stopped(self) -> bool:
        """Return whether the script has stopped Spark, which then no longer knows its tasks."""
        return bool(self.jspark.sparkContext().isStopped())

    def wait_until_quiet(self, patience_s: float) -> bool:
        """Wait until no job of the block and no task at all runs here; return False if `patience_s` passed first, or if
        Spark was stopped.
        """
        until_s = time.monotonic() + patience_s
        while time.monotonic() < until_s and not self._is_stopped():
            if self._is_quiet():
                return True
            time.sleep(_POLL_S)
        return False

    def _is_quiet(self) -> bool:
        from py4j.protocol import Py4JJavaError

        context = self.jspark.sparkContext()
        # Spark records jobs in a thread of its own. Somebody's slow listener must not hold up the block's end.
        with suppress(Py4JJavaError):  # TimeoutException
            context.listenerBus().waitUntilEmpty(_RECORDS_WAIT_MS)
        tracker = self.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        if any(job is not None and job.status == "RUNNING" for job in jobs):
            return False
        # Not the tracker's: Spark may record an executor's tasks as late as at its next heartbeat, after ten seconds.
        tasks = context.taskScheduler().runningTasksByExecutors().valuesIterator()
        while tasks.hasNext():
            if tasks.next():
                return False
        return True

    def has_lost_tasks(self) -> bool:
        """Return whether Spark has killed or repeated a task of the block, whose process it does not wait for, or no
        longer knows. `BlockJobs.java` asks more, in one call; a build may lack its jar.
        """
        from py4j.protocol import Py4JJavaError

        tracker, records = self.spark.sparkContext.statusTracker(), self.jspark.sparkContext().statusStore()
        for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._group)):
            if job is None:
                return True
            for number in job.stageIds:
                try:
                    stage = records.lastStageAttempt(number)
                except Py4JJavaError:  # NoSuchElementException
                    return True
                if stage.attemptId() or stage.numFailedTasks() or stage.numKilledTasks():
                    return True
        return False
