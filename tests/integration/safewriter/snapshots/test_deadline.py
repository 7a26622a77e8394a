"""A guarded build that meets its deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from safewriter.errors import DeadlineError
from safewriter.snapshots import OutputOptions
from safewriter.snapshots.write.folders import task_folder
from safewriter.snapshots.write.job import BuildJob
from tests.support.deadlines import FarDeadline, tasks_run
from tests.support.hygiene import wait_for_hygiene
from tests.support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from safewriter.snapshots.write.job import Written
    from soal.testing.s3 import EmbeddedS3
    from tests.integration.safewriter.snapshots.conftest import Build
    from tests.support.snapshot_prefix import SnapshotPrefix

pytestmark = pytest.mark.spark

UPLOADS = ("PutObject", "CreateMultipartUpload", "UploadPart")


@pytest.fixture
def old(spark: SparkSession, build: Build, prefix: SnapshotPrefix, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The objects of a snapshot that was published before the run."""
    with monkeypatch.context() as outside:
        outside.delenv("SW_CHECKPOINT_BUCKET")
        build(spark.range(10).selectExpr("id", "'old' AS v"))
    return prefix.data()


def test_a_build_is_cancelled_at_its_deadline(
    spark: SparkSession, build: Build, prefix: SnapshotPrefix, old: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old snapshot stays current, and no object of the build is left when its block ends."""
    far = FarDeadline.of(monkeypatch)

    def sleep(number: int) -> int:
        time.sleep(600)
        return number

    frame = spark.range(0, 4, 1, 2).select(
        F.udf(sleep, "long", useArrow=False)("id").alias("id"), F.lit("v").alias("v")
    )
    far.come_when(lambda: tasks_run(spark, 2))
    with pytest.raises(DeadlineError, match="rolled_back"):
        build(frame)
    wait_for_hygiene()
    assert prefix.data() == old
    document = prefix.document()
    assert (document.status, prefix.markers(document)) == ("rolled_back", ())
    prefix.check()


def test_no_process_of_a_cancelled_task_uploads_behind_the_end_of_its_build(
    spark: SparkSession,
    s3: EmbeddedS3,
    build: Build,
    prefix: SnapshotPrefix,
    old: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark does not wait for it: it still gets what is in its socket, and takes the end for that of its rows."""
    far = FarDeadline.of(monkeypatch)
    frame = spark.range(0, 200_000, 1, 2).selectExpr("id", "repeat('v', 1000) AS v")
    far.come_when(lambda: len(list(tmp_path.glob("task-*/*/shard.db"))) == 2)
    s3.wire.clear_trace()
    with pytest.raises(DeadlineError, match="rolled_back"):
        build(frame, output=OutputOptions(local_root=tmp_path))
    ended_ns = time.monotonic_ns()
    wait_for_hygiene()
    with task_folder(str(tmp_path)) as folder:  # removes those of dead processes
        assert list(tmp_path.iterdir()) == [folder]
    uploads = [one for one in s3.wire.trace() if one.key.endswith("/shard.db") and one.operation in UPLOADS]
    assert not [one for one in uploads if one.started_ns > ended_ns]
    assert prefix.data() == old
    document = prefix.document()
    assert (document.status, prefix.markers(document)) == ("rolled_back", ())


def test_a_deadline_behind_the_shards_leaves_the_old_snapshot(
    spark: SparkSession, build: Build, prefix: SnapshotPrefix, old: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before the manifest is written, and all shards of the build are removed."""
    far = FarDeadline.of(monkeypatch)
    run = BuildJob.run

    def meets_it(job: BuildJob, df: DataFrame, rows_read: int | None = None) -> Written:
        written = run(job, df, rows_read)
        far.come()
        assert until(lambda: prefix.document().status == "rolled_back")
        return written

    monkeypatch.setattr(BuildJob, "run", meets_it)
    with pytest.raises(DeadlineError, match="rolled_back"):
        build(spark.range(100).selectExpr("id", "'new' AS v"))
    wait_for_hygiene()
    assert prefix.data() == old
    prefix.check()
