"""The class-data archive of this working tree, under the real handler: used, or reported as unusable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from handler.spark.archive import archive_of
from scripts.emulator.rie import LambdaEmulator
from soal.home import Home
from soal.testing.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

HOME = Home.of().path
SCRIPTS = "soal-scripts"
APPENDS = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
from safewriter import SafeWriter
with SafeWriter(spark, "s3a://{LAKE}/archive") as sw:
    spark.range(3).write.format("delta").mode("append").save(sw.table)
    sw.success()
"""
# The share of the classes in jars that this job loads; others are compiled while it runs, or the log store's.
SHARE_MIN = 0.95
CLASSES_MIN = 8000
# The share of its lambda classes; others are made when a task reads its serialised closure.
LAMBDAS_MIN = 0.9


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        server.observer().put_object(Bucket=SCRIPTS, Key="appends.py", Body=APPENDS.encode())
        server.observer().put_object(Bucket=SCRIPTS, Key="nothing.py", Body=b"")
        yield server


def run(s3: EmbeddedS3, script: str, variables: dict[str, str]) -> Result:
    environment = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SOAL_ERRORS": "return",
        **variables,
    }
    with LambdaEmulator(environment, timeout_s=BUSY_S) as function:
        return Result.model_validate(function.invoke(f"s3://{SCRIPTS}/{script}").payload)


def test_a_job_takes_its_classes_from_the_archive(s3: EmbeddedS3, tmp_path: Path) -> None:
    """Nearly all classes that a guarded append loads from jars are in it, and there is no warning."""
    assert archive_of(HOME).is_file(), "scripts/setup says why"
    loaded = tmp_path / "classes.log"
    result = run(s3, "appends.py", {"JAVA_TOOL_OPTIONS": f"-Xlog:class+load=info:file={loaded}"})
    assert (result.state, result.warnings) == ("SUCCESS", ()), result.log_tail
    log = loaded.read_text()
    sources = re.findall(r"source: (shared objects file \(top\)|file:\S+\.jar|jar:\S+)", log)
    archived = sum(source.startswith("shared") for source in sources)
    assert archived > CLASSES_MIN
    assert archived / len(sources) > SHARE_MIN
    lambdas = re.findall(r"\S+\$\$Lambda\$\S+ source: (.*)", log)
    assert sum(source.startswith("shared") for source in lambdas) / len(lambdas) > LAMBDAS_MIN


def test_a_job_that_lost_the_archive_says_so(s3: EmbeddedS3, tmp_path: Path) -> None:
    """Java refuses an archive made for other jars; the job runs, and its result warns."""
    (tmp_path / "jars").mkdir()
    for jar in HOME.glob("jars/*.jar"):
        (tmp_path / "jars" / jar.name).symlink_to(jar)
    (tmp_path / "jars" / "aaa.jar").symlink_to(next(HOME.glob("jars/delta-storage-*.jar")))
    archive_of(tmp_path).symlink_to(archive_of(HOME))
    result = run(s3, "nothing.py", {"SOAL_HOME": str(tmp_path)})
    assert result.state == "SUCCESS", result.log_tail
    (warning,) = result.warnings
    assert f"Java did not take the class-data archive {tmp_path}/spark.jsa (shared class paths mismatch)" in warning
