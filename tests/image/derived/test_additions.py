"""The example of a derived image: what it adds runs, and its archive is its own.

`soal image derive image/derived --tag soal-derived`, then `soal image test --tag soal-derived tests/image/derived`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.image.jobs import APPENDS
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow]

ADDED = f"""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F
    spark = SparkSession.builder.getOrCreate()
    spark.range(6).write.format("avro").mode("overwrite").save("s3a://{LAKE}/avro")
    frame = spark.read.format("avro").load("s3a://{LAKE}/avro")
    print("avro", frame.count())

    @F.pandas_udf("long")
    def twice(column):
        return 2 * column

    print("pandas function", frame.select(twice("id").alias("id")).agg(F.sum("id")).first()[0])
    print("Arrow", frame.toArrow().num_rows, frame.toPandas().id.sum())
    grouped = frame.groupBy((frame.id % 2).alias("odd")).applyInPandas(lambda part: part.head(1), frame.schema)
    print("applyInPandas", grouped.count())
    print("mapInArrow", frame.mapInArrow(lambda batches: batches, frame.schema).count())
    """


def test_what_is_added_runs(cage: Cage) -> None:
    """Avro files, functions in pandas and Arrow."""
    with cage.function() as function:
        result = cage.run(function, ADDED)
    assert result.state == "SUCCESS", result.log_tail
    said = [line for line in result.log_tail if not line.startswith("WARN")]
    assert said == ["avro 6", "pandas function 30", "Arrow 6 15", "applyInPandas 2", "mapInArrow 6"]
    assert result.warnings == ()


def test_the_archive_was_trained_again(cage: Cage) -> None:
    """Its class path has a jar more, so that of the image would be refused; it holds Avro's classes, too."""
    script = ADDED.split("@F.pandas_udf", maxsplit=1)[0]
    log = "/tmp/classes.log"
    with cage.function({"JAVA_TOOL_OPTIONS": f"-Xlog:class+load=info:file={log}"}) as function:
        result = cage.run(function, script)
        assert (result.state, result.warnings) == ("SUCCESS", ()), result.log_tail
        avro = function.inside("grep", "-c", "org.apache.spark.sql.avro.*source: shared objects file (top)", log)
    assert int(avro) > 0


def test_the_image_s_own_job_still_runs(cage: Cage) -> None:
    """A guarded append, with nothing to remark."""
    with cage.function() as function:
        result = cage.run(function, APPENDS)
    assert (result.state, result.warnings) == ("SUCCESS", ()), result.log_tail
