"""Delta's checksums, written by one request each; all else that Spark writes whole goes its usual way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

OVERWRITE: Final = False


def files_at(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    """Make Java's object for the folder of a file, as Spark does; return it and the file's path."""
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(uri)
    return jvm.io.soal.logstore.ChecksumFiles(path.getParent(), spark.sparkContext._jsc.hadoopConfiguration()), path


def test_a_commit_is_followed_by_one_request_for_its_checksum(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """No other name, no copy, no question before; what it says is true of the version."""
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
    """The stream is cancelled, not closed: a half of it is no object."""
    files, path = files_at(spark, f"{lake.table}/_delta_log/{7:020}.crc")
    stream = files.createAtomic(path, OVERWRITE)
    stream.write(bytearray(b"half"))
    stream.cancel()
    assert lake.store.get(f"_delta_log/{7:020}.crc") is None


def test_other_files_are_not_overwritten(spark: SparkSession, lake: Lake) -> None:
    """A stream's log tells by that whether another run has the same batch."""
    files, path = files_at(spark, f"{lake.table}-stream/offsets/0")
    files.mkdirs(path.getParent())
    files.createAtomic(path, OVERWRITE).close()
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        files.createAtomic(path, OVERWRITE).close()
