"""Texts in which a library may replace a name by a value, and a script that uses them in every argument."""

from __future__ import annotations

from typing import Final

__all__ = ["BAITS", "SCRIPT", "SETTINGS", "VARIABLES", "forms", "texts"]

VARIABLES: Final = {
    "AWS_SECRET_ACCESS_KEY": "baitOfTheSecretKey",
    "AWS_SESSION_TOKEN": "baitOfTheSessionToken",
    "OWNERS_VARIABLE": "baitOfTheVariable",
}
SETTINGS: Final = {
    "spark.hadoop.partner.password": "baitOfHadoopsSetting",
    "spark.sql.catalog.partner.token": "baitOfSparksSetting",
}
BAITS: Final = (*VARIABLES.values(), *SETTINGS.values())
_OF_EACH_VARIABLE: Final = (
    # Hadoop's Configuration
    "${env.NAME}", "${env.NAME-none}", "${env.NAME:-none}", "${env.NAME:-}", "${env.${env.NOBODY-NAME}}",
    # Spark's settings and SQL, and Hive's before it
    "${env:NAME}", "${system:NAME}", "${spark:NAME}", "${sparkconf:NAME}", "${hiveconf:NAME}", "${hivevar:NAME}",
)  # fmt: skip
_OF_THE_OWNERS_VARIABLE: Final = (
    # Log4j, Commons Text, shells, templates
    "${sys:NAME}", "${ctx:NAME}", "${main:NAME}", "${jndi:dns:${env:NAME}}", "${script:javascript:NAME}", "${NAME}",
    "$NAME", "%NAME%", "%(NAME)s", "{NAME}", "{{NAME}}", "`echo $NAME`", "$(echo $NAME)", "#{NAME}", "@{env.NAME}",
)  # fmt: skip
_OF_EACH_SETTING: Final = ("${NAME}", "${system:NAME}", "${spark:NAME}", "${sparkconf:NAME}", "${hiveconf:NAME}")
_TOGETHER: Final = 14
"""Hadoop stops after twenty replacements in one text, and at the first unknown name."""


def forms() -> list[str]:
    """Return each form for each name."""
    settings = dict.fromkeys(name for key in SETTINGS for name in (key, key.removeprefix("spark.hadoop.")))
    return [
        *(form.replace("NAME", name) for name in VARIABLES for form in _OF_EACH_VARIABLE),
        *(form.replace("NAME", "OWNERS_VARIABLE") for form in _OF_THE_OWNERS_VARIABLE),
        *(form.replace("NAME", name) for name in settings for form in _OF_EACH_SETTING),
    ]


def texts(together: int = _TOGETHER) -> list[str]:
    """Return all forms, several per text, so that one path or statement holds them; those with a colon separately,
    since Hadoop lists no such name.
    """
    found = []
    for has_colon in (False, True):
        apart = [form for form in forms() if (":" in form) is has_colon]
        found += ["".join(apart[first : first + together]) for first in range(0, len(apart), together)]
    return found


SCRIPT: Final = r"""
import json, sys
from pyspark.sql import SparkSession

texts = sys.argv[1:]
builder = SparkSession.builder.config("spark.app.name", texts[0])
lake = "spark.sql.catalog.lake"
for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": "s3a://lake/w"}.items():
    builder = builder.config(lake + key, value)
spark = builder.getOrCreate()
sc = spark.sparkContext
rows = spark.range(1).selectExpr("cast(id AS string) AS id").coalesce(1)
pairs = sc.parallelize([("a", "b")], 1)
OUTPUT = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
INPUT = "org.apache.hadoop.mapreduce.lib.input.TextInputFormat"
TEXT, LONG = "org.apache.hadoop.io.Text", "org.apache.hadoop.io.LongWritable"
AGENT, DIR = "fs.s3a.user.agent.prefix", "mapreduce.output.fileoutputformat.outputdir"

def catalog(text, name, **properties):
    for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", **properties}.items():
        spark.conf.set("spark.sql.catalog." + name + ("." if key else "") + key.replace("_", "."), value)
    spark.sql("CREATE TABLE " + name + ".db.t (id INT) USING iceberg")

def iceberg(text, clause):
    iceberg.number += 1
    name = "lake.db.t%d" % iceberg.number
    spark.sql("CREATE TABLE " + name + " (id STRING) USING iceberg " + clause)
    rows.writeTo(name).append()
iceberg.number = 0

def stream(text, source, checkpoint):
    lines = spark.readStream.text(source)
    query = lines.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()

def read(format, **options):
    return lambda text, path: spark.read.format(format).options(**options).load(path).collect()

def write(format):
    return lambda text, path: rows.write.format(format).mode("overwrite").save(path)

OF_A_PATH = {
    **{"read " + one: read(one) for one in ("text", "csv", "parquet", "binaryFile", "delta")},
    **{"write " + one: write(one) for one in ("csv", "parquet", "delta")},
    "csv of lines": read("csv", multiLine=True),
    "json of lines": read("json", multiLine=True),
    "textFile": lambda text, path: sc.textFile(path).count(),
    "wholeTextFiles": lambda text, path: sc.wholeTextFiles(path).count(),
    "binaryFiles": lambda text, path: sc.binaryFiles(path).count(),
    "sequenceFile": lambda text, path: sc.sequenceFile(path).count(),
    "newAPIHadoopFile": lambda text, path: sc.newAPIHadoopFile(path, INPUT, LONG, TEXT).count(),
    "saveAsTextFile": lambda text, path: pairs.saveAsTextFile(path + "-rdd"),
    "saveAsNewAPIHadoopFile": lambda text, path: pairs.saveAsNewAPIHadoopFile(path + "-new", OUTPUT),
    "SQL of a path": lambda text, path: spark.sql("SELECT * FROM csv.`" + path.replace("`", "``") + "`").collect(),
    "SQL with a location": lambda text, path: (
        spark.sql("DROP TABLE IF EXISTS t"),
        spark.sql("CREATE TABLE t (id STRING) USING csv LOCATION '" + path + "'"),
        spark.sql("INSERT INTO t VALUES ('1')"),
    ),
    "location of Iceberg's": lambda text, path: iceberg(text, "LOCATION '" + path + "'"),
    "property of Iceberg's": lambda text, path: iceberg(text, "TBLPROPERTIES ('write.data.path'='" + path + "')"),
    "warehouse": lambda text, path: catalog(text, "w%d" % abs(hash(text)), type="hadoop", warehouse=path),
    "stream": lambda text, path: stream(text, path, "s3a://lake/checkpoint"),
    "checkpoint of a stream": lambda text, path: stream(text, "s3a://lake/plain", path),
    "checkpoint of RDDs": lambda text, path: sc.setCheckpointDir(path),
    "addFile": lambda text, path: sc.addFile(path),
}
OF_A_TEXT = {
    "SQL": lambda text: spark.sql("SELECT '" + text.replace("'", "") + "' AS x").write.mode("append").csv("s3a://lake/sql"),
    "SQL of a variable": lambda text: (
        spark.sql("SET mine=" + text), spark.sql("SELECT '${mine}' AS x").write.mode("append").csv("s3a://lake/set")
    ),
    "identifier": lambda text: spark.table("lake.`" + text.replace("`", "``") + "`.t"),
    "identifier of SQL": lambda text: spark.sql(
        "CREATE TABLE lake.`" + text.replace("`", "") + "`.t (id INT) USING iceberg"
    ),
    "option of a reader": lambda text: spark.read.option(AGENT, text).csv("s3a://lake/plain").collect(),
    "option of a writer": lambda text: rows.write.option(AGENT, text).mode("append").csv("s3a://lake/option"),
    "configuration of an input": lambda text: (
        sc.newAPIHadoopFile("s3a://lake/plain", INPUT, LONG, TEXT, conf={AGENT: text}).count()
    ),
    "configuration of an output": lambda text: pairs.saveAsNewAPIHadoopDataset(conf={
        DIR: "s3a://lake/out-" + text, "mapreduce.job.outputformat.class": OUTPUT, AGENT: text
    }),
    "header of a catalog": lambda text: (
        catalog(text, "h%d" % abs(hash(text)), type="rest", uri=LISTENER, header_x=text)
    ),
    "URL of JDBC": lambda text: spark.read.jdbc(JDBC + text, "t").collect(),
    "property of JDBC": lambda text: spark.read.jdbc(JDBC, "t", properties={"user": text, "password": text}).collect(),
}
LISTENER = spark.conf.get("spark.hadoop.test.listener")
JDBC = "jdbc:postgresql://" + LISTENER.removeprefix("http://") + "/"
# The names of these objects are a producer's.
OF_A_FOLDER = {
    "csv of lines": read("csv", multiLine=True), "json of lines": read("json", multiLine=True),
    "whole texts": read("text", wholetext=True), "csv": read("csv"), "binaryFile": read("binaryFile"),
    "wholeTextFiles": lambda text, path: sc.wholeTextFiles(path).count(),
    "binaryFiles": lambda text, path: sc.binaryFiles(path).count(),
    "textFile": lambda text, path: sc.textFile(path + "/*").count(),
    "stream": lambda text, path: stream(text, path, "s3a://lake/checkpoint-of-names"),
}
ends = {}
def attempt(name, call):
    try:
        call()
        ended = "ran"
    except Exception as error:
        ended = type(error).__name__
    ends.setdefault(name, {}).setdefault(ended, 0)
    ends[name][ended] += 1

for name, call in OF_A_FOLDER.items():
    for folder in "one", "colon", "none":
        attempt("names: " + name, lambda: call("", "s3a://lake/named-" + folder))
for text in texts:
    for name, call in OF_A_PATH.items():
        attempt(name, lambda: call(text, "s3a://lake/of-" + name.replace(" ", "-").replace("'", "") + "-" + text))
    for name, call in OF_A_TEXT.items():
        attempt(name, lambda: call(text))
for first in range(0, len(ends), 8):
    print("ENDS", json.dumps(list(ends.items())[first : first + 8]))
"""
