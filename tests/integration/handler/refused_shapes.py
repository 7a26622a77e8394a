"""Scripts in shapes that people publish and that cannot work here, each with the answer's sentence on what to do."""

from __future__ import annotations

_BEGIN = """
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame([(1, "Rome"), (2, "Bern")], "id INT, city STRING")
"""
_ICEBERG = (
    _BEGIN
    + """
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
spark.sql("CREATE TABLE IF NOT EXISTS lake.db.kept (id INT, city STRING) USING iceberg")
with SafeWriter(spark, "lake.db.kept", format="iceberg") as sw:
    """
)
_REPLACES = "create it before the block (CREATE TABLE IF NOT EXISTS), and replace its rows by INSERT OVERWRITE"
REFUSED = {
    "a Glue job": (
        """
import sys
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext
from awsglue.context import GlueContext
from awsglue.job import Job

args = getResolvedOptions(sys.argv, ["JOB_NAME", "day"])
""",
        "take arguments with argparse (--key value is passed on as it is), and leave job.init and job.commit out",
    ),
    "pandas behind PySpark's back": (
        _BEGIN + "rows.toPandas().to_csv('/tmp/rooms.csv')",
        "the image does not have pandas, NumPy and PyArrow: its variant full does",
    ),
    "DELETE and append in one block of Delta": (
        _BEGIN
        + """
rows.write.format("delta").save(f"{place}/rooms")
with SafeWriter(spark, f"{place}/rooms") as sw:
    spark.sql(f"DELETE FROM delta.`{sw.table}` WHERE id = 1")
    rows.write.format("delta").mode("append").save(sw.table)
    sw.success()
""",
        'give each statement a block and a step of its own (SafeWriter(…, step="…"))',
    ),
    "createIfNotExists and MERGE in one block": (
        _BEGIN
        + """
from delta.tables import DeltaTable
with SafeWriter(spark, f"{place}/rooms") as sw:
    table = DeltaTable.createIfNotExists(spark).location(sw.table).addColumns(rows.schema).execute()
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    sw.success()
""",
        "Create the table before the block",
    ),
    "createOrReplace of an Iceberg table": (
        _ICEBERG + "rows.writeTo(sw.table).using('iceberg').createOrReplace()",
        _REPLACES,
    ),
    "saveAsTable of an Iceberg table": (_ICEBERG + "rows.write.mode('overwrite').saveAsTable(sw.table)", _REPLACES),
    "threads on one session": (
        _BEGIN
        + """
from concurrent.futures import ThreadPoolExecutor
def load(name):
    with SafeWriter(spark, f"{place}/{name}") as sw:
        rows.write.format("delta").mode("append").save(sw.table)
        sw.success()
with ThreadPoolExecutor(3) as pool:
    list(pool.map(load, "abc"))
""",
        "give the block of another thread a session of its own, which also makes its rows",
    ),
    "an error with its cause": (
        _BEGIN
        + """
try:
    rows = spark.sql("SELECT city FROM rooms")
except Exception as error:
    raise RuntimeError("the day cannot be loaded") from error
""",
        "RuntimeError: the day cannot be loaded; root cause: AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] ",
    ),
    "an exit code behind an error that was logged": (
        """
import json, logging, sys
try:
    settings = json.load(open("settings.json"))
except Exception:
    logging.exception("the job has failed")
    sys.exit(1)
""",
        "the script ended with exit code 1: while handling FileNotFoundError: [Errno 2] No such file or directory",
    ),
}
