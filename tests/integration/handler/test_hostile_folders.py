"""Whoever may write one object names it, lists others in it, or gives it a schema: none of that leads out of a folder,
to another server, or to SQL.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from scripts.provision.__main__ import main as setup
from scripts.provision.place import ROOT
from soal.home import home_of, python_of
from soal.testing.s3 import EmbeddedS3
from tests.support.listener import Listener
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

CHECKPOINTS, SCRIPTS, LAKE, OTHER = "checkpoints", "scripts", "lake", "other"
TRIGGERED = ROOT / "scripts" / "demonstration" / "account" / "jobs" / "triggered.py"
ICE = {
    "spark.sql.catalog.own": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.own.type": "hadoop",
    "spark.sql.catalog.own.warehouse": f"s3a://{LAKE}/ice",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
TOLD = f"""
import json, os, sys, tempfile, time
from pyspark.sql import SparkSession
from safewriter import SafeWriter, object_path

builder = SparkSession.builder
for name, value in {ICE}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
jvm = spark._jvm

def append(table):
    with SafeWriter(spark, table) as sw:
        spark.range(2).write.format("delta").mode("append").save(sw.table)
        sw.success()

def orphans(prefix):
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "own.db.orphans")
    action = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession).deleteOrphanFiles(table)
    later = int(time.time() * 1000) + 100_000
    return list(action.usePrefixListing(prefix).olderThan(later).execute().orphanFileLocations())

def stream(source, target):
    query = spark.readStream.text(source).select('value').writeStream.format("text").trigger(availableNow=True)
    query.option("checkpointLocation", target + "-checkpoint").start(target).awaitTermination()

def dstream(folder, names):
    from pyspark.streaming import StreamingContext
    context, found = StreamingContext(spark.sparkContext, 1), []
    context.textFileStream(folder).foreachRDD(lambda rdd: found.extend(rdd.collect()))
    context.start()
    for name in names:
        path = jvm.org.apache.hadoop.fs.Path(folder + "/" + name)
        out = path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path)
        out.write(bytearray(name.encode()))
        out.close()
    last = time.monotonic() + {BUSY_S}
    while set(found) < set(names) and time.monotonic() < last:
        context.awaitTerminationOrTimeout(1)
    context.stop(stopSparkContext=False)
    return sorted(found)

def rows(frame):
    return frame.columns, sorted(map(tuple, frame.collect()))

for text in sys.argv[1:]:
    try:
        print("TOLD", json.dumps(str(eval(text))))
    except Exception as error:
        lines = [line for line in str(error).splitlines() if not line.strip().startswith(("at ", "... "))]
        print("TOLD", json.dumps(f"{{type(error).__name__}}: {{' '.join(dict.fromkeys(lines))[:900]}}"))
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE, OTHER], unlistable=[CHECKPOINTS]) as server:
        server.observer().put_object(Bucket=SCRIPTS, Key="told.py", Body=TOLD.encode())
        yield server


@pytest.fixture(scope="module")
def function(s3: EmbeddedS3) -> Iterator[LambdaEmulator]:
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with LambdaEmulator(environment, timeout_s=12 * BUSY_S, memory_mb=1769) as emulator:
        yield emulator


def told(function: LambdaEmulator, *expressions: str) -> list[str]:
    """Return the value or the error of each expression, in one job."""
    event = {"entryPoint": f"s3://{SCRIPTS}/told.py", "entryPointArguments": list(expressions)}
    answer = function.invoke(event)
    result = Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))
    ends = [json.loads(line.removeprefix("TOLD")) for line in result.log_tail if line.startswith("TOLD")]
    assert len(ends) == len(expressions), (result.state_details, result.log_tail)
    return ends


def put(s3: EmbeddedS3, key: str, text: str | bytes = b"row\n", *, bucket: str = LAKE) -> None:
    s3.observer().put_object(Bucket=bucket, Key=key, Body=text if isinstance(text, bytes) else text.encode())


def keys(s3: EmbeddedS3, prefix: str, *, bucket: str = LAKE) -> list[str]:
    return [one["Key"] for one in s3.observer().list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]


def test_a_commit_deletes_no_file_that_metadata_names(function: LambdaEmulator, s3: EmbeddedS3, tmp_path: Path) -> None:
    """Of a table's old metadata files Iceberg deletes earlier ones beside the current one, and nothing else."""
    append = "spark.range(2).writeTo('own.db.old').append()"
    properties = "'write.metadata.delete-after-commit.enabled'='true', 'write.metadata.previous-versions-max'='1'"
    create = f'spark.sql("CREATE TABLE own.db.old (id BIGINT) USING iceberg TBLPROPERTIES ({properties})")'
    assert told(function, create, append)[1:] == ["None"]
    folder = "ice/db/old/metadata"
    (tmp_path / "victim").touch()
    put(s3, "pay/a.csv", bucket=OTHER)
    put(s3, "pay/v1.metadata.json", bucket=OTHER)
    put(s3, f"{folder}/notes.txt")
    body = s3.observer().get_object(Bucket=LAKE, Key=f"{folder}/v2.metadata.json")["Body"].read()
    metadata = json.loads(body)
    assert [one["metadata-file"] for one in metadata["metadata-log"]] == [f"s3a://{LAKE}/{folder}/v1.metadata.json"]
    named = [
        f"s3a://{OTHER}/pay/a.csv",
        f"s3a://{OTHER}/pay/v1.metadata.json",
        f"s3a://{LAKE}/{folder}/notes.txt",
        f"s3a://{LAKE}/{folder}/v3.metadata.json",  # the file that the commit itself writes
        f"file:{tmp_path}/victim",
    ]
    metadata["metadata-log"][:0] = [{"metadata-file": one, "timestamp-ms": 1} for one in named]
    put(s3, f"{folder}/v2.metadata.json", json.dumps(metadata))

    assert told(function, append) == ["None"]

    assert keys(s3, "pay", bucket=OTHER) == ["pay/a.csv", "pay/v1.metadata.json"]
    assert f"{folder}/notes.txt" in keys(s3, folder)
    assert (tmp_path / "victim").exists()
    assert f"{folder}/v3.metadata.json" in keys(s3, folder)
    assert f"{folder}/v1.metadata.json" not in keys(s3, folder)


def test_the_list_of_a_stream_names_no_file_outside_of_its_folder(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """What a stream has written is read once; a list with another file, or by another scheme, ends the statement."""
    put(s3, "pay/day=1/a.csv", "pay\n", bucket=OTHER)
    put(s3, "pay/day=1/a.csv", "pay\n")
    outside = {
        "bucket": f"s3a://{OTHER}/pay/day=1/a.csv",
        "folder": f"s3a://{LAKE}/pay/day=1/a.csv",
        "neighbour": f"s3a://{LAKE}/drop-neighbour-2/day=1/a.csv",
        "dots": f"s3a://{LAKE}/drop-dots/%2e%2e/pay/day=1/a.csv",
        "disk": "file:/etc/day=1/hostname",
    }
    for name, path in outside.items():
        put(s3, f"drop-{name}/a.csv")
        status = {
            "path": path, "size": 4, "isDir": False, "modificationTime": 1, "blockReplication": 1,
            "blockSize": 1_000_000, "action": "add",
        }  # fmt: skip
        put(s3, f"drop-{name}/_spark_metadata/0", f"v1\n{json.dumps(status)}")
    put(s3, "streamed/in/a.txt", "one\ntwo\n")
    # A second batch, so that the folder has more than one list.
    source, target = f"s3a://{LAKE}/streamed/in", f"s3://{LAKE}/streamed/out"
    count = "spark.read.text('%s').count()"
    on_disk = "tempfile.gettempdir() + '/out'"

    ends = told(function, *(f"spark.read.csv('s3a://{LAKE}/drop-{name}').collect()" for name in outside))
    first = told(function, f"stream('{source}', '{target}')", count % target)
    put(s3, "streamed/in/b.txt", "three\n")
    second = told(function, f"stream('{source}', '{target}')", count % target, count % target.replace("s3:", "s3a:"))
    disk = told(function, f"stream('{source}', {on_disk})", f"spark.read.text({on_disk}).count()")

    assert [name for name, end in zip(outside, ends, strict=True) if "which is not below" not in end] == []
    assert "delete _spark_metadata" in ends[0]
    assert (first, second[:2]) == (["None", "2"], ["None", "3"])
    assert "read it by the scheme that the list has" in second[2]
    assert disk == ["None", "3"]


def test_no_path_asks_a_server_that_the_settings_do_not_name(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """A path's scheme alone opens nothing but S3 and the disk: neither to read, nor for the files of a table."""
    server = Listener()
    at = server.url.removeprefix("http://").rstrip("/")
    schemes = ("http", "https", "hdfs", "webhdfs", "swebhdfs", "ftp", "viewfs", "har")
    reads = [f"spark.read.text('{scheme}://{at}/a').collect()" for scheme in schemes]
    context = "jvm.org.apache.hadoop.fs.FileContext.getFileContext(jvm.java.net.URI('%s'))"
    contexts = [context % f"{scheme}://{at}/a" for scheme in ("hdfs", "webhdfs", "ftp")]
    properties = f"'write.data.path'='webhdfs://{at}/data'"
    create = f'spark.sql("CREATE TABLE own.db.sent (id BIGINT) USING iceberg TBLPROPERTIES ({properties})")'
    write = "spark.range(2).writeTo('own.db.sent').append()"
    plain = "jvm.org.apache.hadoop.fs.FileSystem.getLocal(jvm.org.apache.hadoop.conf.Configuration()).getScheme()"

    ends = told(function, *reads, *contexts)
    wrote = told(function, create, write, plain)

    assert [end for end in ends[: len(reads)] if "No FileSystem for scheme" not in end] == []
    assert [end for end in ends[len(reads) :] if "No AbstractFileSystem configured for scheme" not in end] == []
    assert "No FileSystem for scheme" in wrote[1]
    assert wrote[2] == "file"
    assert server.heard == b""
    server.close()

    put(s3, "reads.py", "from pyspark.sql import SparkSession\n" + reads[3].replace(
        "spark.", "SparkSession.builder.getOrCreate().", 1
    ), bucket=SCRIPTS)  # fmt: skip
    answer = function.invoke({"entryPoint": f"s3://{SCRIPTS}/reads.py"})
    assert answer.error is not None
    said = json.loads(answer.error.message)["stateDetails"]
    assert "name the file system's class in the session (spark.hadoop.fs.SCHEME.impl)" in said


def test_a_folder_of_s3a_s_committer_holds_rows_as_any_other(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """A table that names one (__magic_job-…) gets its rows, not uploads that nobody finishes."""
    folder = "__magic_job-1"
    properties = f"'write.data.path'='s3a://{LAKE}/x/{folder}/data'"
    create = f'spark.sql("CREATE TABLE own.db.magic (id BIGINT) USING iceberg TBLPROPERTIES ({properties})")'
    write = "spark.range(2).writeTo('own.db.magic').append()"
    delta = f"s3a://{LAKE}/delta/{folder}/t"

    ends = told(
        function, create, write, "spark.table('own.db.magic').count()", f"append('{delta}')",
        f"spark.read.format('delta').load('{delta}').count()",
    )  # fmt: skip

    assert ends[1:] == ["None", "2", "None", "2"]
    assert len(keys(s3, f"x/{folder}/data/")) == 1


def test_a_key_that_is_no_path_stands_for_no_other_object(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """With dots or an empty element in a listed key, readers and clean-ups fail, and name the object."""
    files, table = f"s3a://{LAKE}/keys/in", f"s3a://{LAKE}/keys/delta"
    make = [
        f"append('{table}')",
        "spark.sql('CREATE TABLE own.db.orphans (id BIGINT) USING iceberg')",
        "spark.range(2).writeTo('own.db.orphans').append()",
    ]
    assert told(function, *make)[-1] == "None"
    put(s3, "keys/in/a.csv")
    put(s3, "keys/pay/a.csv", "pay\n")
    put(s3, "keys/in/../pay/a.csv")
    put(s3, "keys/in/./b/c.csv")
    put(s3, "keys/empty//a.csv")
    put(s3, f"/{OTHER}/a.csv", bucket=OTHER)
    put(s3, "keys/delta/../pay/a.csv")
    put(s3, "ice/db/orphans/data/../../../../keys/pay/a.csv")
    recursive = "spark.read.option('recursiveFileLookup', 'true').text('%s').collect()"
    ways = [
        recursive % files,
        f"spark.read.text('{files}').collect()",
        f"spark.sparkContext.textFile('{files}').collect()",
        recursive % f"s3a://{LAKE}/keys/empty",
        recursive % f"s3a://{OTHER}/",
        f"spark.sql('VACUUM delta.`{table}` RETAIN 0 HOURS').collect()",
        "orphans(True)",
        "orphans(False)",
    ]

    ends = told(function, *ways)

    assert [(way, end) for way, end in zip(ways, ends, strict=True) if "has no path" not in end] == []
    assert f"the object with the key 'keys/in/../pay/a.csv' in s3a://{LAKE}" in ends[0]
    assert "keys/pay/a.csv" in keys(s3, "keys/pay/")


def test_the_name_of_a_listed_file_is_no_pattern(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """Each file of a folder is read as itself, and no other for it, whatever signs of a pattern its name has."""
    csv = "spark.read.csv('{}', header=True, inferSchema=True, multiLine=%s)"
    forms = {
        "csv": ("{0},b\n1,{1}\n", [csv % True, csv % False]),
        "json": ('{{"{0}": 1, "b": {1}}}', ["spark.read.json('{}', multiLine=True)", "spark.read.json('{}')"]),
        "xml": ("<rows><row><{0}>1</{0}><b>{1}</b></row></rows>", ["spark.read.xml('{}', rowTag='row')"]),
    }
    names = {
        "outside": ["{{../,}}{{../,}}pay/y.{}", r"\../\../pay/y.{}"],
        "honest": [
            "{{a.{}", "{{b,c}}.{}", "a[1].{}", "*.{}", "?.{}", "a b.{}", "a%20b.{}", "a,b.{}", r"a\b.{}", "10:30.{}",
        ],
    }  # fmt: skip
    expected: dict[str, str] = {}
    for form, (body, reads) in forms.items():
        put(s3, f"listed/pay/y.{form}", body.format("pin", 4711))
        for kind, patterns in names.items():
            for number, name in enumerate(patterns):
                put(s3, f"listed/{form}-{kind}/p=1/{name.format(form)}", body.format("a", number))
            rows = [(1, number, 1) for number in range(len(patterns))]
            folder = f"s3a://{LAKE}/listed/{form}-{kind}"
            expected |= {f"rows({read.format(folder)})": str((["a", "b", "p"], rows)) for read in reads}
    honest, count = f"s3a://{LAKE}/listed/csv-honest", str(len(names["honest"]))
    expected |= {
        f"spark.read.text('{honest}', wholetext=True).count()": count,
        f"spark.read.format('binaryFile').load('{honest}').count()": count,
        f"len(spark.sparkContext.wholeTextFiles('{honest}/p=1').collect())": count,
    }

    ends = told(function, *expected)

    assert {way: end for way, end in zip(expected, ends, strict=True) if end != expected[way]} == {}


def test_a_script_reads_the_object_of_its_event_and_no_other(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """The path of a key stands for that object, in a job as the account's journey has it, too."""
    put(s3, "event/pay/y.csv", "a;b\npay;1\n")
    put(s3, "event/in/zz.csv", "a;b\nother;1\n")
    names = ["in/{../pay/y.csv,zz.csv}", "in/*.csv", r"in/\../pay/y.csv", "in/[1] 10%20é,b.csv"]
    for name in names:
        put(s3, f"event/{name}", "a;b\nown;1\n")
    reads = [f"rows(spark.read.text(object_path('{LAKE}', {f'event/{name}'!r})))" for name in names]

    assert told(function, *reads) == [str((["value"], [("a;b",), ("own;1",)]))] * len(names)

    put(s3, "triggered.py", TRIGGERED.read_text(encoding="utf-8"), bucket=SCRIPTS)
    environment = {
        **s3.environment(),
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SOAL_ENTRY_POINT": f"s3://{SCRIPTS}/triggered.py",
        "TABLES": f"s3a://{LAKE}/event/tables",
    }
    detail = {"bucket": {"name": LAKE}, "object": {"key": f"event/{names[0]}"}}
    with LambdaEmulator(environment, timeout_s=12 * BUSY_S, memory_mb=1769) as triggered:
        answer = triggered.invoke({"id": "e-1", "detail-type": "Object Created", "source": "aws.s3", "detail": detail})
    assert answer.error is None
    landed = f"rows(spark.read.format('delta').load('s3a://{LAKE}/event/tables/landed'))"
    assert told(function, landed) == [str((["a", "b"], [("own", 1)]))]


def test_a_path_that_is_an_object_and_a_folder_ends_the_statement(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """S3 has `a.csv` beside `a.csv/z.csv`: whatever leads there, nothing is read or deleted, and both are named."""
    objects = ["in/a.csv", "in/b.csv", "in/a.csv/z.csv", "hidden/a.csv", "hidden/a.csv/_", "fold", "fold/a.csv"]
    objects += ["part/p=1/a.csv", "part/p=1", "deep/p=1/a.csv", "deep/p=1/a.csv/_"]
    for key in objects:
        put(s3, f"both/{key}")
    at = f"s3a://{LAKE}/both"
    text, context = "spark.read.text(%s).collect()", "spark.sparkContext"
    recursive = "spark.read.option('recursiveFileLookup', 'true').text(%s).collect()"
    names = ["in/a.csv", "in", "in/*.csv", "in/{a,b}.csv", "hidden", "hidden/[a].csv", "fold/"]
    names += ["part", "part/p=1", "part/*", "deep", "deep/p=1/a.csv"]
    beside = [f"{at}/in/b.csv", f"{at}/in/a.csv/z.csv", f"{at}/in/a.csv"]
    ways = {
        **{name: text % repr(f"{at}/{name}") for name in names},
        "s3": text % repr(f"s3://{LAKE}/both/in"),
        "both in one list": text % beside,
        "on executors": text % (beside[:1] * 40 + beside[2:]),
        "recursive": recursive % repr(f"{at}/in"),
        "a list, recursive": recursive % [f"{at}/in", f"{at}/deep"],
        "SQL": f"spark.sql('CREATE TABLE both USING text LOCATION \"{at}/in\"')",
        "binary": f"spark.read.format('binaryFile').load('{at}/in/a.csv').collect()",
        "schema": f"spark.read.json('{at}/in/a.csv', multiLine=True).collect()",
        "stream": f"stream('{at}/in', '{at}-streamed')",
        "stream of a pattern": f"stream('{at}/in/*', '{at}-streamed')",
        "textFile": f"{context}.textFile('{at}/in/a.csv').collect()",
        "textFile of a list": f"{context}.textFile('{','.join(beside)}').collect()",
        "textFile of a folder": f"{context}.textFile('{at}/in').collect()",
        "textFile of a pattern": f"{context}.textFile('{at}/in/*.csv').collect()",
        "textFile of braces": f"{context}.textFile('{at}/{{in/a.csv,hidden/b*}}').collect()",
        "wholeTextFiles": f"{context}.wholeTextFiles('{at}/in').collect()",
        "binaryFiles": f"{context}.binaryFiles('{at}/fold').collect()",
        "overwrite": f"spark.range(2).write.mode('overwrite').csv('{at}/fold')",
    }

    ends = told(function, *ways.values())

    said = dict(zip(ways, ends, strict=True))
    assert {way: end for way, end in said.items() if "is an object, and also the folder of the object" not in end} == {}
    assert f"{at}/in/a.csv is an object, and also the folder of the object {at}/in/a.csv/z.csv" in said["in"]
    assert keys(s3, "both/fold") == ["both/fold", "both/fold/a.csv"]
    assert keys(s3, "both-streamed/part") == []


def test_a_write_deletes_no_object_with_the_name_of_a_folder(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """Whether it overwrites partitions or appends, and whichever committer moves its files."""
    objects = [f"{name}/p=1{below}" for name in ("dynamic", "append", "tasks") for below in ("", "/a.csv")]
    for key in objects:
        put(s3, f"into/{key}")
    at = f"s3a://{LAKE}/into"
    rows = "spark.sql('SELECT id, 1 AS p FROM range(2)').write.partitionBy('p')"
    by_tasks = "spark._jsc.hadoopConfiguration().set('mapreduce.fileoutputcommitter.algorithm.version', '2')"

    ends = told(
        function,
        f"{rows}.option('partitionOverwriteMode', 'dynamic').csv('{at}/dynamic', mode='overwrite')",
        f"{rows}.csv('{at}/append', mode='append')",
        f"({by_tasks}, {rows}.csv('{at}/tasks', mode='append'))",
    )

    assert [end for end in ends if "is an object, and also the folder of the object" not in end] == []
    assert {f"into/{key}" for key in objects} <= set(keys(s3, "into/"))


def test_an_address_with_a_port_is_no_empty_folder(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """S3A takes the name before it for the bucket, and would then find none of its own paths below it."""
    put(s3, "port/a.csv")
    at = f"s3a://{LAKE}:443/port"

    ends = told(function, f"spark.read.text('{at}').collect()", f"spark.sparkContext.textFile('{at}').collect()")

    assert [end for end in ends if f"s3a://{LAKE}:443 is no address of a bucket" not in end] == []


def test_a_path_that_is_one_of_both_is_read(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """An object below another is read by a path that is no other's, and a folder with its marker as one without."""
    for key in ("in/a.csv", "in/a.csv/z.csv", "marked/a.csv"):
        put(s3, f"single/{key}", f"{key}\n")
    put(s3, "single/marked/", "")
    put(s3, "single/marked/empty/", "")
    at = f"s3a://{LAKE}/single"
    below, marked = "(['value'], [('in/a.csv/z.csv',)])", "(['value'], [('marked/a.csv',)])"
    expected = {
        f"rows(spark.read.text('{at}/in/a.csv/z.csv'))": below,
        f"rows(spark.read.text('{at}/in/a.csv/*'))": below,
        f"rows(spark.read.text('{at}/marked'))": marked,
        f"rows(spark.read.option('recursiveFileLookup', 'true').text('{at}/marked/'))": marked,
        f"spark.sparkContext.textFile('{at}/marked/*').collect()": "['marked/a.csv']",
        f"spark.range(2).write.mode('overwrite').csv('{at}/marked')": "None",
        f"spark.read.csv('{at}/marked').count()": "2",
    }

    assert told(function, *expected) == list(expected.values())


def test_a_stream_goes_on_once_a_path_is_an_object_or_a_folder_again(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """It fails while a path is both, and reads every row once after one of the two is gone."""
    source, target = f"s3a://{LAKE}/again/in", f"s3a://{LAKE}/again/out"
    put(s3, "again/in/a.csv", "first\n")
    go_on = f"stream('{source}', '{target}')"
    assert told(function, go_on) == ["None"]
    put(s3, "again/in/b.csv", "second\n")
    put(s3, "again/in/b.csv/_", "")
    put(s3, "again/in", "other\n")

    for gone in ("again/in", "again/in/b.csv/_"):
        assert "is an object, and also the folder" in told(function, go_on)[0]
        s3.observer().delete_object(Bucket=LAKE, Key=gone)

    rows = f"rows(spark.read.text('{target}'))"
    assert told(function, go_on, rows) == ["None", str((["value"], [("first",), ("second",)]))]


def test_one_partition_hides_no_file_beside_it(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """Spark would read the files of the partitions only, so the statement fails, and names a file and a partition."""
    put(s3, "mixed/in/a.csv", "first\n")
    put(s3, "mixed/in/p=1/c.csv", "second\n")
    put(s3, "whole/in/p=1/c.csv", "only\n")
    for key in ("whole/in/p=2/_hidden", "whole/in/_SUCCESS", "whole/in/p=3_$folder$", "whole/in/.notes"):
        put(s3, key, "" if "$" in key else "hidden\n")
    mixed, whole = f"s3a://{LAKE}/mixed/in", f"s3a://{LAKE}/whole/in"
    recursive = f"rows(spark.read.option('recursiveFileLookup', 'true').text('{mixed}'))"

    ends = told(
        function, f"spark.read.text('{mixed}').collect()", f"spark.sql('SELECT * FROM text.`{mixed}`').collect()",
        f"stream('{mixed}', 's3a://{LAKE}/mixed/out')", recursive,
        f"rows(spark.read.option('pathGlobFilter', 'c.*').text('{mixed}'))", f"rows(spark.read.text('{whole}'))",
    )  # fmt: skip

    assert [end for end in ends[:3] if f"{mixed}/a.csv lies in no partition" not in end] == []
    assert ends[3] == str((["value"], [("first",), ("second",)]))
    assert ends[4:] == [str((["value", "p"], [("second", 1)])), str((["value", "p"], [("only", 1)]))]


def test_a_stream_reads_each_file_once_whatever_its_name(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """A file whose name looks like a pattern does not bring the rows of its neighbours a second time."""
    names = ["*.csv", "?.csv", "{b,c}.csv", "[a-d].csv", "b.csv", "c.csv"]
    for name in names:
        put(s3, f"once/in/{name}", f"{name}\n")
    source, target = f"s3a://{LAKE}/once/in", f"s3a://{LAKE}/once/out"

    ends = told(function, f"stream('{source}', '{target}')", f"rows(spark.read.text('{target}'))")

    assert ends == ["None", str((["value"], [(name,) for name in sorted(names)]))]


def test_a_dstream_reads_each_file_once_whatever_its_name(s3: EmbeddedS3) -> None:
    """A comma in a name does not make two paths of it either. Only the image's variant full has DStreams."""
    assert setup(["--variant", "full", "--without-archive"]) == 0
    home = home_of(ROOT / ".soal", "full")
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SOAL_HOME": str(home)}
    names = sorted(["*.csv", "{b,c}.csv", "[b].csv", "b.csv", "c.csv", "d,e.csv", "{d,e.csv", "d},{e.csv"])

    with LambdaEmulator(environment, timeout_s=12 * BUSY_S, memory_mb=1769, python=python_of(home)) as full:
        assert told(full, f"dstream('s3a://{LAKE}/dstream', {names})") == [str(names)]


def test_a_file_s_schema_brings_literals_and_no_sql(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """Spark evaluates the default of a column that a file lacks only if it is a literal, as Spark itself writes it."""
    sql = ("repeat('x', 3)", "concat('x', 'y')", "(SELECT 'x')", "current_user()", "array(upper('x'))")
    for number, text in enumerate(("'x'", *sql)):
        fields = [
            {"name": name, "type": "string", "nullable": True, "metadata": metadata}
            for name, metadata in (("a", {}), ("b", {"EXISTS_DEFAULT": text}))
        ]
        footer = json.dumps({"type": "struct", "fields": fields})
        body = io.BytesIO()
        rows = pa.table({"a": ["x"]})
        pq.write_table(rows.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": footer}), body)
        put(s3, f"schemas/{number}/a.parquet", body.getvalue())
    columns = {
        "i INT": "1 + 2", "n BIGINT": "-5", "s STRING": "concat('x', 'y')", "d DECIMAL(5,2)": "1.5", "f DOUBLE": "0.5",
        "t TIMESTAMP": "TIMESTAMP '2026-01-02 03:04:05'", "u DATE": "DATE '2026-01-02'", "v ARRAY<INT>": "array(1, 2)",
        "w MAP<STRING, INT>": "map('a', 1)", "x STRUCT<a: INT, b: STRING>": "named_struct('a', 1, 'b', 'c')",
        "y BINARY": "X'01'", "z INT": "NULL",
    }  # fmt: skip
    added = ", ".join(f"{column} DEFAULT {value}" for column, value in columns.items())
    own = [
        f"spark.sql(\"CREATE TABLE defaults (id INT) USING parquet LOCATION 's3a://{LAKE}/schemas/own'\")",
        "spark.sql('INSERT INTO defaults VALUES (1)')",
        f'spark.sql("ALTER TABLE defaults ADD COLUMNS ({added})")',
        "spark.sql('SELECT concat_ws(\"|\", i, n, s, d, f, t, u, v, w.a, to_json(x), z) FROM defaults').first()[0]",
    ]

    ends = told(function, *(f"spark.read.parquet('s3a://{LAKE}/schemas/{n}').first().b" for n in range(1 + len(sql))))

    assert ends[0] == "x"
    assert [end for end in ends[1:] if "(EXISTS_DEFAULT) that is no literal" not in end] == []
    assert told(function, *own)[-1] == '3|-5|xy|1.50|0.5|2026-01-02 03:04:05|2026-01-02|1|2|1|{"a":1,"b":"c"}'


def test_the_properties_of_an_iceberg_table_make_no_object_of_another_class(function: LambdaEmulator) -> None:
    """A class that is no LocationProvider is refused before it is constructed, which may write a file."""
    properties = "'write.location-provider.impl'='java.util.logging.FileHandler'"
    create = f'spark.sql("CREATE TABLE own.db.placed (id BIGINT) USING iceberg TBLPROPERTIES ({properties})")'
    write = "spark.range(2).writeTo('own.db.placed').append()"

    ends = told(function, create, write, "[name for name in os.listdir(os.path.expanduser('~')) if '.log' in name]")

    assert "which is no org.apache.iceberg.io.LocationProvider" in ends[1]
    assert ends[2] == "[]"
