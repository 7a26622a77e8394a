"""Write a CSV file of accommodations to an Iceberg table, guarded: the file lands whole, once, or not at all.

The table is created before the block, with the columns of the first file. The function's settings (SOAL_CONF) name the
catalog:

{"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.lake.type": "rest",
 "spark.sql.catalog.lake.uri": "https://CATALOG"}

{"entryPoint": "s3://BUCKET/jobs/accommodations_iceberg.py", "clientToken": "2026-11-20",
 "entryPointArguments": ["--source", "s3a://BUCKET/accommodations.csv", "--table", "lake.db.accommodations"]}
"""

import argparse

from pyspark.sql import SparkSession

from safewriter import SafeWriter

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="name of the Iceberg table: catalog.namespace.table")
args = parser.parse_args()

spark = SparkSession.builder.appName("accommodations").getOrCreate()

# A quote inside of quotes is doubled in this file, and a backslash is only a backslash: Spark's default is the reverse.
frame = spark.read.csv(args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)

# Quoted: an argument in a statement must be a name and nothing more.
namespace = ".".join("`" + name.replace("`", "``") + "`" for name in args.table.split(".")[:-1])
spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
if not spark.catalog.tableExists(args.table):
    frame.limit(0).writeTo(args.table).using("iceberg").create()
with SafeWriter(spark, args.table, format="iceberg") as sw:
    if sw.already_committed:
        print(f"{sw.table}: an earlier attempt of this run has committed this write")
    else:
        frame.writeTo(sw.table).append()
    sw.success()
