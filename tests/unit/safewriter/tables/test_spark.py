"""How a block's Spark session names its write, with a session that is made of plain objects."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.clientserver import ClientServer

from safewriter.errors import UnguardedSessionError, UnsupportedError, UsageError
from safewriter.tables.session import MicroBatch
from safewriter.tables.spark import SparkScope
from tests.unit.safewriter.tables.scopes import Properties, scope

BATCH = {"sql.streaming.queryId": "query", "streaming.sql.batchId": "3"}

KEYS = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


def stream_at(batch: int) -> Any:
    return SimpleNamespace(
        runId=lambda: "start", getLatestExecutionContext=lambda: SimpleNamespace(batchId=lambda: batch)
    )


def elsewhere(found: SparkScope) -> Any:
    """Call it on a thread that is not the main one."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(found.micro_batch())
        except UsageError as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return answers[0]


def test_a_batch_is_named_by_its_stream_and_the_streams_start() -> None:
    """A batch that comes again in the same start is no second delivery."""
    assert elsewhere(scope(BATCH, {"query": stream_at(3)})) == MicroBatch("query", "3", "start")


@pytest.mark.parametrize(
    ("streams", "where"), [({"query": 4}, "is at batch 4"), ({}, "has ended"), ({"other": 3}, "has")]
)
def test_a_thread_that_was_started_in_another_batch_is_refused(streams: dict[str, int], where: str) -> None:
    """It keeps the name that it was given; the batch that it writes now would count as one that is committed."""
    found = elsewhere(scope(BATCH, {name: stream_at(batch) for name, batch in streams.items()}))

    assert isinstance(found, UsageError)
    assert where in str(found)


def test_a_thread_that_knows_no_batch_is_refused_while_a_stream_runs() -> None:
    """A foreachBatch may have started it; the error says what to do."""
    found = elsewhere(scope({}, {"query": object()}))

    assert isinstance(found, UsageError)
    assert "inheritable_thread_target" in str(found)


@pytest.mark.parametrize("half", BATCH)
def test_half_a_name_is_none(half: str) -> None:
    """A query without its batch would give all its batches one name."""
    found = elsewhere(scope({half: BATCH[half]}, {"query": stream_at(3)}))

    assert isinstance(found, UsageError)
    assert "does not say which of its batches" in str(found)


def test_a_thread_without_a_stream_belongs_to_the_run() -> None:
    """A job may write from as many threads as it likes."""
    assert elsewhere(scope({}, {})) is None


def test_the_main_thread_belongs_to_the_run_whatever_streams_there_are() -> None:
    """Spark calls foreachBatch on threads of its own."""
    assert scope({}, {"query": object()}).micro_batch() is None


def test_the_main_thread_may_be_one_of_a_batch() -> None:
    """By its properties, whichever thread it is."""
    assert scope(BATCH, {"query": stream_at(3)}).micro_batch() == MicroBatch("query", "3", "start")


def test_a_client_of_spark_connect_is_refused() -> None:
    """It has no JVM, and the guard's gate must be in one that the block can reach."""
    session: Any = SimpleNamespace(_jvm=None)
    with pytest.raises(UnguardedSessionError, match="Spark Connect"):
        SparkScope(session, "s3a://lake/t")


def test_a_session_of_another_spark_is_refused() -> None:
    """Also if the platform has made it, without `configure_spark`."""
    context = SimpleNamespace(_gateway=object.__new__(ClientServer))
    session: Any = SimpleNamespace(_jvm=object(), version="4.0.1", sparkContext=context)
    with pytest.raises(UnsupportedError, match=r"this is Spark 4\.0\.1"):
        SparkScope(session, "s3a://lake/t")


def test_a_class_of_java_is_asked_for_by_its_full_name() -> None:
    """On the connection of the session."""
    gateway = SimpleNamespace(_gateway_client=MagicMock())
    found: Any = scope({}, {})
    found.spark.sparkContext._gateway = gateway
    java = SparkScope.java_class(found, "java.util.UUID")
    assert (java._fqn, java._gateway_client) == ("java.util.UUID", gateway._gateway_client)


def test_a_path_has_neither_a_catalog_nor_its_secrets() -> None:
    """Spark reaches a table at a path without a catalog."""
    assert scope({}, {}).secrets == {}
    assert scope({}, {}).catalog == {}


def test_threads_that_are_not_pinned_are_refused() -> None:
    """It would be unclear which thread a write comes from."""
    with pytest.raises(UnguardedSessionError, match="PYSPARK_PIN_THREAD"):
        scope({}, {}, gateway=object())


def test_a_spark_that_was_stopped_knows_nothing_of_its_tasks() -> None:
    """Its context is gone from Python, and with it the status tracker."""
    found = scope({}, {})
    found.jspark = SimpleNamespace(sparkContext=lambda: SimpleNamespace(isStopped=lambda: True))

    assert not found.wait_until_quiet(60)


def test_a_session_is_put_back_whatever_fails_and_the_first_failure_is_told() -> None:
    """The others are still undone, in reverse order."""
    found, done = scope({}, {}), []

    def failing(error: BaseException) -> None:
        done.append(str(error))
        raise error

    for error in (ValueError("third"), RuntimeError("second"), KeyboardInterrupt("first")):
        found.on_restore(lambda error=error: failing(error))  # type: ignore[misc]

    with pytest.raises(KeyboardInterrupt, match="first"):
        found.restore()
    assert done == ["first", "second", "third"]
    found.restore()
    assert len(done) == 3


@pytest.mark.parametrize(("theirs", "shown"), [("Nightly", "Nightly"), (None, "SafeWriter")])
def test_a_thread_s_own_job_group_is_put_back(theirs: str | None, shown: str) -> None:
    """Its name, its description, which the block's jobs also have, and whether its tasks are interrupted."""
    group = Properties({"spark.jobGroup.id": "theirs", "spark.job.interruptOnCancel": "false"})
    if theirs is not None:
        group["spark.job.description"] = theirs
    before, found = dict(group), scope(group, {})
    context: Any = found.spark.sparkContext
    began: list[Any] = []

    def begin(*arguments: object, **options: object) -> None:
        began.extend((*arguments, options))
        group.update(dict.fromkeys((*group, "spark.job.description"), "ours"))

    context.setJobGroup = begin

    found.begin_group("safewriter-1")

    assert began == ["safewriter-1", shown, {"interruptOnCancel": True}]
    assert group != before
    found.restore()
    assert group == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_blocks_of_one_thread_put_its_job_group_back_in_whatever_order_they_end(order: tuple[int, int]) -> None:
    """The group of a failed block is cancelled: left on the thread, it would cancel every later statement."""
    group = Properties(dict.fromkeys(KEYS, "theirs"))
    blocks = [scope(group, {}), scope(group, {})]
    for number, block in enumerate(blocks):
        context: Any = block.spark.sparkContext
        context.setJobGroup = lambda name, shown, **_: group.update(zip(KEYS, (name, shown, "true"), strict=True))
        block.begin_group(f"safewriter-{number}")

    first, last = order
    blocks[first].restore()
    assert group["spark.jobGroup.id"] == f"safewriter-{last}"
    blocks[last].restore()
    assert group["spark.jobGroup.id"] == "theirs"
