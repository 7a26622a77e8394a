"""Writes to the function's own disk, by real jobs: Spark refuses each that would be lost, and no other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.integration.handler.disk_scripts import SINKS, USES
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[[str], Result]

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

SETTING = "spark.hadoop.fs.file.impl"
FOLDER = "work"
"""The directory in which a job starts, below its sandbox."""
FAILS = """
from pyspark.sql import SparkSession

SparkSession.builder.getOrCreate().range(3).write.parquet("output/report")
"""
# Paths that an argument may name: Java's own environment, another process's, by a link; the handler's files; and
# Spark's event log, which has the settings in clear.
READS = """
import json, os, tempfile
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
link = tempfile.gettempdir() + "/link"
os.symlink("/proc", link)
sandbox = os.path.dirname(os.getcwd())
os.symlink(sandbox, tempfile.gettempdir() + "/up")
places = {
    "own": "file:/proc/self/environ",
    "any": "file:/proc/[0-9]*/environ",
    "link": "file:" + link + "/self/environ",
    "arguments": "file:" + sandbox + "/submission",
    "journal": "file:" + sandbox + "/*.json*",
    "script": "file:" + __file__,
    "up": "file:" + tempfile.gettempdir() + "/up/submission",
    "events": "file:" + sandbox + "/{tmp/,}spark-events/*",
}
marks = ("LANG=", "reads.py", "getOrCreate()", "session_ready", "SparkListener")
ways = {
    "text": lambda path: spark.read.text(path).collect(),
    "lines of csv": lambda path: spark.read.csv(path, multiLine=True).collect(),
    "binaryFile": lambda path: spark.read.format("binaryFile").load(path).collect(),
    "textFile": lambda path: sc.textFile(path).collect(),
    "binaryFiles": lambda path: sc.binaryFiles(path).collect(),
}
ends = {}
for place, path in places.items():
    for way, read in ways.items():
        try:
            ends[place + " " + way] = "read" if any(mark in str(read(path)) for mark in marks) else "empty"
        except Exception as error:
            is_refused = "Spark reads no files of processes or of the handler" in str(error)
            ends[place + " " + way] = "refused" if is_refused else "fails"
for end in ends.items():
    print("TOLD", json.dumps(end))
"""
# Paths that a table's metadata may name for deletion: the script, a file and a folder beside the job's, Spark's event
# log, which could be read elsewhere, and a file of the job's own.
REMOVALS = """
import glob, json, os, tempfile
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
jvm, conf = spark._jvm, spark._jsc.hadoopConfiguration()
Path = jvm.org.apache.hadoop.fs.Path
own = tempfile.gettempdir()
beside = tempfile.mkdtemp(dir="/tmp")
for name in ("own/a", "beside/a"):
    open(os.path.join({"own": own, "beside": beside}[name[:-2]], "a"), "w").close()
(events,) = glob.glob(os.path.dirname(own) + "/**/spark-events/local-*", recursive=True)
for name, path in {
    "script": __file__,
    "beside": beside + "/a",
    "folder": beside,
    "events": events,
    "own": own + "/a",
}.items():
    files = Path("file:" + path).getFileSystem(conf)
    for way, remove in {
        "rename": lambda path: files.rename(Path("file:" + path), Path("file:" + own + "/moved-" + name)),
        "delete": lambda path: files.delete(Path("file:" + path), True),
        "context": lambda path: jvm.org.apache.hadoop.fs.FileContext.getFileContext(conf).delete(
            Path("file:" + path), True),
    }.items():
        try:
            remove(path)
        except Exception as error:
            assert "Spark deletes and moves only the job's own files" in str(error), error
    print("TOLD", json.dumps([name, os.path.exists(path)]))
spark.sql(f"CREATE DATABASE empty LOCATION '{beside}/empty'")
spark.sql("DROP DATABASE empty")
assert not os.path.exists(beside + "/empty")
spark.sql("CREATE DATABASE gone")
spark.sql("DROP DATABASE gone")
"""
# The environment of each process of a job, readable by path.
ENVIRONMENTS = """
import json, os
from pyspark.sql import SparkSession, functions as F

def seen(_):
    import os
    return [str(os.getpid()), str(os.getppid()), os.environ["OWNERS_VARIABLE"]]

spark = SparkSession.builder.getOrCreate()
worker, daemon, variable = spark.range(1).select(F.udf(seen, "array<string>")("id")).first()[0]
java = str(spark._jvm.java.lang.ProcessHandle.current().pid())
print("TOLD", json.dumps(["a function", variable]))
print("TOLD", json.dumps(["the script", os.environ["OWNERS_VARIABLE"]]))
pids = {"worker": worker, "daemon": daemon, "driver": "self", "server": str(os.getppid()), "java": java}
for name, pid in pids.items():
    text = open("/proc/" + pid + "/environ").read()
    print("TOLD", json.dumps([name, "PATH=" in text and "of-the-owner" not in text]))
"""


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Run a script in one function, job after job."""
    with EmbeddedS3(buckets=["checkpoints", "scripts", "lake"], unlistable=["checkpoints"]) as s3:
        for name, text in {
            "sinks": SINKS,
            "uses": USES,
            "fails": FAILS,
            "reads": READS,
            "removals": REMOVALS,
            "environments": ENVIRONMENTS,
        }.items():
            s3.observer().put_object(Bucket="scripts", Key=f"{name}.py", Body=text.encode())
        environment = {**s3.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": "checkpoints"}
        environment |= {"OWNERS_VARIABLE": "of-the-owner", "SOAL_EVENT_LOGS": "on"}
        with LambdaEmulator(environment, timeout_s=BUSY_S, memory_mb=1769) as function:

            def ended(name: str) -> Result:
                answer = function.invoke(f"s3://scripts/{name}.py")
                document = answer.payload if answer.error is None else json.loads(answer.error.message)
                return Result.model_validate(document)

            yield ended


def told(result: Result, word: str) -> list[Any]:
    assert result.state == "SUCCESS", result.state_details
    return [json.loads(line.removeprefix(word)) for line in result.log_tail if line.startswith(f"{word} ")]


def test_each_form_of_a_write_to_the_disk_fails_at_its_statement(run: Run) -> None:
    """The error has path, reason and remedy; no file is left, and a script's own file system is ignored."""
    result = run("sinks")
    ends = dict(told(result, "TOLD"))
    assert len(ends) == 30
    reason = "it lies on the function's own disk, which is emptied after the job"
    assert {name: text for name, text in ends.items() if reason not in text} == {}
    for name, text in ends.items():
        assert text.startswith("EmptiedDiskException: Spark does not write /"), (name, text)
        assert "Write to an s3a:// path, or to a table of an Iceberg catalog" in text
    assert f"/{FOLDER}/warehouse/orders_clean" in ends["delta saveAsTable"]
    assert f"/{FOLDER}/output/report" in ends["relative parquet"]
    assert told(result, "LEFT") == [[]]
    assert [warning for warning in result.warnings if SETTING in warning]


def test_reads_scratch_files_and_sparks_own_files_stay(run: Run) -> None:
    """In the previous job's JVM: Spark's own temporary files, and files that a script puts beside them."""
    result = run("uses")
    ends = dict(told(result, "TOLD"))
    assert len(ends) == 14
    assert {name: text for name, text in ends.items() if text != "written"} == {}
    assert result.warm_start


def test_no_way_of_spark_reads_what_is_not_the_job_s(run: Run) -> None:
    """A path from an argument or a table's SQL reads no process's environment and no file of the handler's."""
    ends = dict(told(run("reads"), "TOLD"))
    assert len(ends) == 40
    assert [name for name, end in ends.items() if end == "read"] == []
    assert ends["own lines of csv"] == ends["link lines of csv"] == "refused", ends
    assert [ends[f"{place} text"] for place in ("arguments", "journal", "script", "up", "events")] == ["refused"] * 5, (
        ends
    )


def test_spark_deletes_and_moves_only_what_is_the_job_s_own(run: Run) -> None:
    """A clean-up deletes files by names that others have written, and a move takes a file from its place as well."""
    ends = dict(told(run("removals"), "TOLD"))
    assert ends == {"script": True, "beside": True, "folder": True, "events": True, "own": False}


def test_no_process_of_a_job_was_started_with_the_function_s_variables(run: Run) -> None:
    """Script and functions have them; what Linux shows of their processes by path, as for addFile, does not."""
    ends = dict(told(run("environments"), "TOLD"))
    assert (ends.pop("a function"), ends.pop("the script")) == ("of-the-owner", "of-the-owner")
    assert ends == dict.fromkeys(("worker", "daemon", "driver", "server", "java"), True)


def test_a_job_that_writes_there_fails_with_the_reason(run: Run) -> None:
    """The state's details are the message."""
    result = run("fails")
    assert result.state == "FAILED"
    assert "Spark does not write /" in result.state_details
    assert result.state_details.endswith("and Python's own files anywhere in /tmp (fails.py, line 4)")
