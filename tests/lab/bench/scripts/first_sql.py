"""The smallest job with a result: SQL without a table. `scripts/lab bench start --job sql`."""

from pyspark.sql import SparkSession

ROWS = 1000

spark = SparkSession.builder.getOrCreate()
found = spark.sql(f"SELECT count(*) FROM range({ROWS})").collect()
if found[0][0] != ROWS:
    raise RuntimeError(f"{found} is not the number of rows")
