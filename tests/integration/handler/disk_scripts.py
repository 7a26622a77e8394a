"""Scripts for test_own_disk: each tries writes to the function's own disk, and reports the results."""

from __future__ import annotations

_TRY = """
import json, os, pathlib, shutil, tempfile
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.config("spark.hadoop.fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem").getOrCreate()
rows = spark.range(3)
base = f"/tmp/disk-{os.getpid()}"
own = tempfile.mkdtemp()
files = spark._jvm.org.apache.hadoop.fs.FileSystem.get(spark._jsc.hadoopConfiguration())
place = spark._jvm.org.apache.hadoop.fs.Path
told = {}


def tried(name, write):
    try:
        write()
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"
    else:
        told[name] = "written"
"""
_TELL = """
shutil.rmtree(base, ignore_errors=True)
for name, text in told.items():
    _, refused, rest = text.partition("EmptiedDiskException: ")
    print("TOLD", json.dumps([name, (refused + rest if refused else text)[:700]]))
"""

SINKS = (
    _TRY
    + """
spark.sql("CREATE DATABASE sales")
spark.conf.set("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
spark.conf.set("spark.sql.catalog.ice.type", "hadoop")
spark.conf.set("spark.sql.catalog.ice.warehouse", f"{base}/ice")
rows.write.mode("overwrite").parquet("s3a://lake/in")
stream = spark.readStream.schema("id long").parquet("s3a://lake/in")
pathlib.Path("held").mkdir()


def in_database():
    spark.sql(f"CREATE DATABASE elsewhere LOCATION '{base}/elsewhere'")
    rows.write.saveAsTable("elsewhere.x")


def in_stream(sink, state):
    writer = stream.writeStream.option("checkpointLocation", state).trigger(availableNow=True).format("parquet")
    writer.start(sink).awaitTermination()


SINKS = {
    "delta saveAsTable": lambda: rows.write.format("delta").mode("append").saveAsTable("orders_clean"),
    "parquet saveAsTable": lambda: rows.write.mode("overwrite").saveAsTable("sales.orders"),
    "delta CTAS": lambda: spark.sql("CREATE TABLE made USING delta AS SELECT * FROM range(3)"),
    "parquet CTAS": lambda: spark.sql("CREATE TABLE made USING parquet AS SELECT * FROM range(3)"),
    "CTAS without a format": lambda: spark.sql("CREATE TABLE made AS SELECT * FROM range(3)"),
    "CTAS with a location": lambda: spark.sql(
        f"CREATE TABLE there USING parquet LOCATION '{base}/there' AS SELECT 1 AS id"),
    "delta CREATE TABLE": lambda: spark.sql("CREATE TABLE empty (id BIGINT) USING delta"),
    "parquet CREATE TABLE": lambda: spark.sql("CREATE TABLE empty (id BIGINT) USING parquet"),
    "INSERT INTO": lambda: [
        spark.sql(f"CREATE TABLE held (id BIGINT) USING parquet LOCATION '{os.getcwd()}/held'"),
        spark.sql("INSERT INTO held SELECT 1")],
    "writeTo": lambda: rows.writeTo("sales.x").create(),
    "writeTo delta": lambda: rows.writeTo("sales.x").using("delta").createOrReplace(),
    "a database elsewhere": in_database,
    "a table by its path": lambda: spark.sql(f"CREATE TABLE delta.`{base}/t` USING delta AS SELECT 1 AS id"),
    "relative parquet": lambda: rows.write.parquet("output/report"),
    "delta path": lambda: rows.write.format("delta").save(f"{base}/x"),
    "delta overwrite": lambda: rows.write.format("delta").mode("overwrite").save(f"file://{base}/x"),
    "mnt": lambda: rows.write.save("/mnt/lake/x"),
    "file scheme": lambda: rows.write.orc(f"file://{base}/x"),
    "csv": lambda: rows.write.csv(f"{base}/x"),
    "out of the temporary folder": lambda: rows.write.csv(f"{own}/../../x"),
    "json into a folder that is there": lambda: rows.write.mode("append").json(os.path.abspath("held")),
    "RDD": lambda: spark.sparkContext.parallelize(["a"]).saveAsTextFile(f"{base}/x"),
    "pickled RDD": lambda: spark.sparkContext.parallelize(["a"]).saveAsPickleFile("lake/x"),
    "directory": lambda: spark.sql(f"INSERT OVERWRITE DIRECTORY '{base}/x' USING json SELECT 1 AS id"),
    "iceberg in a folder": lambda: rows.writeTo("ice.db.t").create(),
    "a stream's sink": lambda: in_stream(f"{base}/x", "s3a://lake/state"),
    "a stream's state": lambda: in_stream("s3a://lake/x", f"{base}/state"),
    "a file into a folder that is there": lambda: files.create(place("held/x")).close(),
    "moved": lambda: files.rename(place(own), place("held/moved")),
    "by a FileContext": lambda: spark._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
        spark._jsc.hadoopConfiguration()).rename(place(own), place("held/moved"),
        spark.sparkContext._gateway.new_array(spark._jvm.org.apache.hadoop.fs.Options.Rename, 0)),
}
for name, sink in SINKS.items():
    tried(name, sink)
places = [pathlib.Path(each) for each in (base, ".", "/mnt/lake")]
print("LEFT", json.dumps([str(path) for each in places for path in each.rglob("*") if path.is_file()][:20]))
"""
    + _TELL
)

USES = (
    _TRY
    + """
pathlib.Path(base).mkdir()
pathlib.Path(base, "plain.csv").write_text("id\\n7\\n")
pathlib.Path("here.csv").write_text("id\\n7\\n")
pathlib.Path.home().joinpath("kept.csv").write_text("id\\n7\\n")
pathlib.Path(own, "scratch.csv").write_text("id\\n7\\n")
OWN = (f"{base}/plain.csv", "here.csv", f"{pathlib.Path.home()}/kept.csv", f"{own}/scratch.csv")


def streamed():
    spark.range(3).write.parquet("s3a://lake/batch", mode="overwrite")
    stream = spark.readStream.schema("id long").parquet("s3a://lake/batch")
    query = stream.groupBy(F.col("id") % 2).count().writeStream.format("memory").outputMode("complete")
    query = query.queryName("counted").trigger(availableNow=True).start()
    query.awaitTermination()
    assert spark.table("counted").count() == 2


def checkpointed():
    spark.sparkContext.setCheckpointDir(f"{base}/rdds")
    assert spark.range(3).checkpoint().count() == 3
    counted = spark.sparkContext.parallelize([1, 2], 2)
    counted.checkpoint()
    assert counted.count() == 2


def scratched():
    rows.write.mode("overwrite").parquet(f"{own}/parquet")
    assert spark.read.parquet(f"{own}/parquet").count() == 3
    rows.write.format("delta").save(f"file://{own}/delta")
    rows.write.format("delta").mode("append").save(f"{own}/delta")
    assert spark.read.format("delta").load(f"{own}/delta").count() == 6
    spark.sql(f"CREATE TABLE scratch USING parquet LOCATION '{own}/table' AS SELECT 1 AS id")


def shuffled():
    spark.range(100_000).repartition(7, "id").groupBy(F.col("id") % 11).count().cache().count()
    spark.sparkContext.parallelize(range(1000), 4).map(lambda x: (x % 3, x)).groupByKey().count()


USES = {
    "read": lambda: [spark.read.csv(path, header=True).collect()[0].id for path in OWN],
    "a database": lambda: spark.sql("CREATE DATABASE sales"),
    "a table on S3": lambda: spark.sql("CREATE TABLE sales.t USING delta LOCATION 's3a://lake/t' AS SELECT 1 AS id"),
    "a table on S3 by its path": lambda: rows.write.format("delta").option("path", "s3a://lake/p").saveAsTable("p"),
    "rows into a table on S3": lambda: spark.sql("INSERT INTO sales.t SELECT 2 AS id"),
    "a table of local files": lambda: spark.sql(f"CREATE TABLE plain USING csv LOCATION '{base}'"),
    "a folder that is there": lambda: files.mkdirs(place("/tmp")),
    "a view": lambda: rows.createOrReplaceTempView("seen"),
    "a file for the tasks": lambda: spark.sparkContext.addFile(f"{base}/plain.csv"),
    "a stream in memory": streamed,
    "a checkpoint of RDDs": checkpointed,
    "the temporary folder": scratched,
    "a shuffle": shuffled,
    "the RDD's text on S3": lambda: spark.sparkContext.parallelize(["a"]).saveAsTextFile("s3a://lake/text"),
}
for name, use in USES.items():
    tried(name, use)
"""
    + _TELL
)
