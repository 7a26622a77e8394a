"""Snapshots built by a real Spark, and checked with SQLite and xxhash."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import xxhash

from safewriter.coordination import Configuration, End, JobCoordinator
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.record import OpenWrite
from safewriter.coordination.transitions import end
from safewriter.errors import StepError, StoreError, TurnLostError
from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore, open_store
from safewriter.snapshots import WriteConfig, binary_col, write_sharded
from safewriter.snapshots.errors import (
    ConfigValidationError,
    ManifestParseError,
    ManifestPublishError,
    PublishConflictError,
)
from safewriter.snapshots.format.current import CURRENT
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.manifest import Manifest
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.write.job import BuildJob
from safewriter.snapshots.write.publish import Publisher
from safewriter.tables.spark import SparkScope
from tests.support.observed import LAKE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from safewriter.snapshots.write.job import Written
    from tests.integration.safewriter.snapshots.conftest import Build
    from tests.support.snapshot_prefix import SnapshotPrefix

pytestmark = pytest.mark.spark

ROWS = 5000


def small(spark: SparkSession, value: str) -> DataFrame:
    return spark.range(10).selectExpr("id", f"'{value}' AS v")


@pytest.mark.parametrize("num_dbs", [pytest.param(1, marks=pytest.mark.matrix), 3, 64])
def test_each_row_is_in_its_own_shard(spark: SparkSession, prefix: SnapshotPrefix, build: Build, num_dbs: int) -> None:
    """By the digest of its key; no row is lost or doubled, and no other object is left."""
    frame = spark.range(ROWS).selectExpr("id * 7919 AS id", "concat('value ', id) AS v")
    result = build(frame, num_dbs=num_dbs)
    found = prefix.published()
    assert found is not None
    assert found.values == {(7919 * id_).to_bytes(8, "big"): f"value {id_}".encode() for id_ in range(ROWS)}
    assert sum(map(len, found.shards.values())) == result.stats.rows_written == result.stats.rows_read == ROWS
    prefix.check_routing()
    assert prefix.strays() == set()
    with SnapshotReader(prefix.uri) as reader:
        assert reader.multi_get([7919, 0, 1]) == {7919: b"value 1", 0: b"value 0", 1: None}


def test_keys_may_be_texts(spark: SparkSession, prefix: SnapshotPrefix, build: Build) -> None:
    """Each shard holds them in byte order."""
    frame = spark.range(ROWS).selectExpr("concat('schlüssel ', id) AS id", "cast(id AS string) AS v")
    build(frame, num_dbs=4, key_encoding=KeyEncoding.UTF8)
    found = prefix.published()
    assert found is not None
    for db_id, rows in found.shards.items():
        assert list(rows) == sorted(rows)
        assert all(xxhash.xxh3_64_intdigest(key) % 4 == db_id for key in rows)
    assert len(found.values) == ROWS


def test_a_snapshot_without_rows_has_no_shards(spark: SparkSession, prefix: SnapshotPrefix, build: Build) -> None:
    """It is still published, and its readers find nothing."""
    build(small(spark, "v"))
    result = build(small(spark, "v").where("id < 0"))
    assert (result.shards, result.stats.rows_read) == ((), 0)
    with SnapshotReader(prefix.uri) as reader:
        assert reader.get(1) is None


@pytest.mark.parametrize(
    ("key", "problem", "is_guarded"),
    [
        pytest.param("id DIV 2", "have the id", True, id="guarded"),
        pytest.param("id - 1", "id -1 is not from 0 to", False, id="alone"),
        pytest.param("nullif(id, 7)", "a key is null", True, id="null", marks=pytest.mark.matrix),
    ],
)
def test_rows_that_cannot_be_keys_fail_the_build(
    spark: SparkSession,
    prefix: SnapshotPrefix,
    build: Build,
    key: str,
    problem: str,
    is_guarded: bool,  # noqa: FBT001 - a case's
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two rows of one key, a negative key, no key: `_CURRENT` stays unchanged, and no object of the build is left."""
    if not is_guarded:
        monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    before = build(small(spark, "v"))
    kept = prefix.data()
    with pytest.raises(Exception, match=problem):
        build(spark.range(100).selectExpr(f"{key} AS id", "'v' AS v"))
    with SnapshotReader(prefix.uri) as reader:
        assert reader.manifest_ref == before.manifest_ref
    assert prefix.data() == kept


@pytest.mark.parametrize(
    ("expression", "problem"), [("cast(id AS double) AS id", "has the type double"), ("id AS other", "no column 'id'")]
)
def test_a_column_that_cannot_be_the_key_is_refused(
    spark: SparkSession, build: Build, expression: str, problem: str
) -> None:
    """The error comes before anything is read."""
    with pytest.raises(ConfigValidationError, match=problem):
        build(spark.range(10).selectExpr(expression, "'v' AS v"))


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "alone"])
def test_the_slower_of_two_builds_is_told_so(
    spark: SparkSession,
    prefix: SnapshotPrefix,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_guarded: bool,
) -> None:
    """The other one has published meanwhile, and a refreshing reader continues with it; the slower one's files go."""
    if not is_guarded:
        monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    build(small(spark, "first"))
    kept = prefix.data()
    run = BuildJob.run

    def slower(job: BuildJob, df: DataFrame, rows_read: int | None = None) -> Written:
        written = run(job, df, rows_read)
        monkeypatch.setattr(BuildJob, "run", run)
        build(small(spark.newSession(), "faster"))
        return written

    monkeypatch.setattr(BuildJob, "run", slower)
    with SnapshotReader(prefix.uri) as reader:
        with pytest.raises(PublishConflictError):
            build(small(spark, "slower"))
        assert reader.get(1) == b"first"
        assert reader.refresh()
        assert reader.get(1) == b"faster"
        assert not reader.refresh()
    assert prefix.strays() == kept


def test_a_retry_of_a_run_builds_once(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the snapshot that the previous attempt has published; in one attempt a step is used only once."""
    first = build(small(spark, "first"), step="users")
    with pytest.raises(StepError):
        build(small(spark, "again"), step="users")
    monkeypatch.setenv("SOAL_RUN_ID", "the retry")
    second = build(small(spark, "second"), step="users")
    assert second.already_committed
    assert (second.manifest_ref, second.shards) == (first.manifest_ref, first.shards)
    assert prefix.document().attempt.rows == 10


def test_a_retry_is_told_of_no_manifest_that_was_changed(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_CURRENT` has its SHA-256; the rows that another one names are not the run's."""
    first = build(small(spark, "first"), step="users")
    changed = replace(Manifest.decode(prefix.body(first.manifest_ref), "it"), custom={"by": "somebody"}).encode()
    key = first.manifest_ref.removeprefix(f"s3://{LAKE}/")
    prefix.client.put_object(Bucket=LAKE, Key=key, Body=changed)
    monkeypatch.setenv("SOAL_RUN_ID", "the retry")
    with pytest.raises(ManifestParseError, match=r"somebody has changed the object.* Use a new clientToken"):
        build(small(spark, "second"), step="users")


def test_a_retry_whose_document_is_gone_gets_the_snapshot_that_was_published(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_CURRENT` has its mark; the document that this retry writes leads the next one there, too."""
    first = build(small(spark, "first"), step="users")
    prefix.checkpoints.store.delete(f"checkpoints/{prefix.document().write_key}.json")
    for retry in ("the retry", "another"):
        monkeypatch.setenv("SOAL_RUN_ID", retry)
        again = build(small(spark, "second"), step="users")
        assert (again.already_committed, again.manifest_ref) == (True, first.manifest_ref)


def test_a_build_in_a_turn_is_fenced_by_its_token(spark: SparkSession, prefix: SnapshotPrefix, build: Build) -> None:
    """A build whose turn was taken away publishes nothing; `_CURRENT` holds the token of the last one that did."""
    backend = MemoryBackend()
    coordinator = JobCoordinator(Configuration(lock="snapshot", job="builder"), backend)
    with coordinator.turn() as turn:
        first = build(small(spark, "v"))
        token = turn.token
    with pytest.raises(TurnLostError), coordinator.turn() as turn:
        stored = backend.read("snapshot")
        assert stored is not None
        backend.write(end(stored.record, End.FORCED, 0), stored)
        with pytest.raises(TurnLostError):
            turn.open_write(OpenWrite("s3://checkpoints", "key", 1))  # it notices
        build(small(spark, "late"))
    current = prefix.current()
    assert current is not None
    assert (current["fencing_token"], current["manifest_ref"]) == (token, first.manifest_ref)


def test_all_shards_are_written_by_one_spark_job(
    spark: SparkSession, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written in parallel, however many there are, and the source is read once."""
    groups: list[str] = []
    begin = SparkScope.begin_group

    def noted(scope: SparkScope, group: str) -> None:
        groups.append(group)
        begin(scope, group)

    monkeypatch.setattr(SparkScope, "begin_group", noted)
    result = build(spark.range(ROWS).selectExpr("id", "'v' AS v"), num_dbs=16)
    assert len(result.shards) == 16
    tracker = spark.sparkContext.statusTracker()
    stages = {stage for job in tracker.getJobIdsForGroup(groups[0]) for stage in tracker.getJobInfo(job).stageIds}  # type: ignore[union-attr]
    written = {shard.writer_info["stage_id"] for shard in result.shards}
    assert len(written) == 1
    assert written <= stages
    assert len(tracker.getJobIdsForGroup(groups[0])) <= 2  # with adaptive plans the shuffle counts as a job


@pytest.mark.parametrize("is_guarded", [pytest.param(True, id="guarded"), pytest.param(False, id="alone")])
def test_an_interrupt_after_the_publication_removes_nothing(
    spark: SparkSession,
    prefix: SnapshotPrefix,
    build: Build,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_guarded: bool,
) -> None:
    """Ctrl-C arrives when the pointer has moved but the process has not recorded it yet."""
    if not is_guarded:
        monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    point = Publisher.point

    def interrupted(publisher: Publisher, *arguments: Any, **more: Any) -> None:
        point(publisher, *arguments, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(Publisher, "point", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(small(spark, "new"))
    found = prefix.published()
    assert found is not None
    assert len(found.values) == 10


@pytest.mark.parametrize("is_guarded", [pytest.param(True, id="guarded"), pytest.param(False, id="alone")])
def test_a_build_that_may_not_write_the_pointer_leaves_nothing(
    spark: SparkSession, prefix: SnapshotPrefix, build: Build, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """The refusal is an answer: nothing was published, and the build deletes its manifest and shards."""
    if not is_guarded:
        monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    create = S3ObjectStore.create

    def denied(store: S3ObjectStore, key: str, body: bytes, *, tag: str = "") -> str:
        if key == CURRENT:
            raise StoreError("PUT _CURRENT: denied", denied=True)
        return create(store, key, body, tag=tag)

    monkeypatch.setattr(S3ObjectStore, "create", denied)
    with pytest.raises(ManifestPublishError, match=r"nothing was published: PUT _CURRENT: denied"):
        build(small(spark, "new"))
    assert prefix.current() is None
    store = open_store(Location.parse(prefix.uri))
    assert [listed.key for listed in store.list("") if not listed.key.startswith("runs/")] == []


@pytest.mark.parametrize("is_guarded", [pytest.param(True, id="guarded"), pytest.param(False, id="alone")])
def test_a_prefix_may_be_written_as_spark_does(
    spark: SparkSession, prefix: SnapshotPrefix, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """The scheme s3a and doubled slashes are accepted; the clean-up recognises the shards by it."""
    if not is_guarded:
        monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    written = prefix.uri.replace("s3://", "s3a://").replace("/snapshots/", "//snapshots//")
    write_sharded(
        small(spark, "v"), WriteConfig(num_dbs=2, s3_prefix=f"{written}/"), key_col="id", value_spec=binary_col("v")
    )
    with SnapshotReader(written) as reader:
        assert reader.get(5) == b"v"
    assert prefix.strays() == set()
    prefix.check_routing()
