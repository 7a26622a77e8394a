"""The files of a stream's checkpoint and Delta's checksums: each completely on S3 by one request, or missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from soal.testing.s3.rules import Match, Rule
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

OVERWRITE: Final = False
NOTED: Final = b'v1\n{"nextBatchWatermarkMs":0}'  # of any batch of any query without a watermark


def files_at(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    """Create Java's object for the folder of a file, as Spark does; return it and the file's path."""
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(uri)
    return jvm.io.soal.logstore.StreamFiles(path.getParent(), spark.sparkContext._jsc.hadoopConfiguration()), path


def test_a_commit_is_followed_by_one_request_for_its_checksum(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """No other name, no copy, no request before; its content is true of the version."""
    before = len(s3.trace())
    for _ in range(2):
        spark.range(5).coalesce(1).write.format("delta").mode("append").save(lake.table)
    asked = [one for one in s3.trace()[before:] if one.key.endswith(".crc")]
    written = [(one.operation, one.key.rpartition("/")[2]) for one in asked if one.operation != "GetObject"]
    assert written == [("PutObject", f"{version:020}.crc") for version in (0, 1)]
    stored = lake.store.get(f"_delta_log/{1:020}.crc")
    assert stored is not None
    checksum = json.loads(stored.body)
    assert (checksum["numFiles"], "allFiles" in checksum) == (2, False)


def test_a_write_that_is_broken_off_leaves_no_checksum(spark: SparkSession, lake: Lake) -> None:
    """The stream is cancelled, not closed, and leaves no partial object."""
    files, path = files_at(spark, f"{lake.table}/_delta_log/{7:020}.crc")
    stream = files.createAtomic(path, OVERWRITE)
    stream.write(bytearray(b"half"))
    stream.cancel()
    assert lake.store.get(f"_delta_log/{7:020}.crc") is None


@pytest.mark.parametrize("bodies", [(b"ours", b"theirs"), (NOTED, NOTED)], ids=["different", "equal"])
def test_of_two_runs_of_a_query_one_gets_the_batch(
    spark: SparkSession, s3: EmbeddedS3, lake: Lake, bodies: tuple[bytes, bytes]
) -> None:
    """Each makes one conditional request; the other run gets an error that the file exists, as Spark expects."""
    files, path = files_at(spark, f"{lake.table}-stream/commits/0")
    s3.wire.clear_trace()
    first, second = files.createAtomic(path, OVERWRITE), files.createAtomic(path, OVERWRITE)
    first.write(bytearray(bodies[0]))
    second.write(bytearray(bodies[1]))
    first.close()
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        second.close()
    assert [one.status for one in s3.trace() if one.operation == "PutObject"] == [200, 412]
    assert {one.key.rpartition("/")[2] for one in s3.trace()} == {"0"}


def test_a_run_whose_answer_was_lost_has_the_batch(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """The repeated request finds the file there, and the run recognises it as its own."""
    files, path = files_at(spark, f"{lake.table}-stream/commits/0")
    s3.wire.clear_trace()
    s3.wire.add(Rule(Match(operations={"PutObject"}), LoseReply()))
    stream = files.createAtomic(path, OVERWRITE)
    stream.write(bytearray(NOTED))
    stream.close()
    assert [one.operation for one in s3.trace()] == ["PutObject", "PutObject", "HeadObject"]


def test_a_file_of_state_is_one_request_and_takes_the_place_of_another(
    spark: SparkSession, s3: EmbeddedS3, lake: Lake
) -> None:
    """A repeated batch writes its state again; a cancelled write leaves none."""
    files, path = files_at(spark, f"{lake.table}-stream/state/0/0/1.delta")
    s3.wire.clear_trace()
    for body in (b"once", b"again"):
        stream = files.createAtomic(path, not OVERWRITE)
        stream.write(bytearray(body))
        stream.close()
    broken = files.createAtomic(path, not OVERWRITE)
    broken.write(bytearray(b"half"))
    broken.cancel()
    assert [(one.operation, one.status) for one in s3.trace()] == [("PutObject", 200), ("PutObject", 200)]
