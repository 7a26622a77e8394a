"""Scripts of the jobs that run under the emulator."""

from __future__ import annotations

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

GUARDED = """
import os, sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

class Price:
    def __init__(self, cents): self.cents = cents

def in_euro(cents): return Price(cents).cents / 100

if __name__ == "__main__":
    spark = (  # as scripts for other runtimes do it
        SparkSession.builder.master("yarn")
        .config("spark.driver.memory", "5g")
        .config("spark.executor.memory", "100m")
        .config("spark.jars.packages", "io.delta:delta-core_2.12:2.2.0")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.delta.logStore.s3a.impl", "io.delta.storage.S3SingleDriverLogStore")
        .config("spark.hadoop.fs.s3a.access.key", os.environ["AWS_ACCESS_KEY_ID"])
        .config("spark.hadoop.fs.s3a.secret.key", os.environ["AWS_SECRET_ACCESS_KEY"])
        .config("spark.hadoop.fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider")
        .config("spark.hadoop.fs.s3a.endpoint", "http://127.0.0.1:9")
        .config("fs.s3a.endpoint", "http://127.0.0.1:9")
        .enableHiveSupport()
        .getOrCreate()
    )
    from safewriter import SafeWriter
    with SafeWriter(spark, "s3a://lake/prices") as sw:
        frame = spark.range(1000).select(udf(in_euro, "double")("id").alias("euro"))
        frame.write.format("delta").mode("append").save(sw.table)
        sw.success()
    print("argv", sys.argv[1:], "in", *(path.split("-")[0] for path in (os.environ["HOME"], os.getcwd())))
    print(spark.sparkContext.master, spark.conf.get("spark.sql.shuffle.partitions"), spark.sparkContext.appName)
    import helper; print(helper.WORD)
"""
WITH_A_WHEEL = """
from pyspark.sql import SparkSession
import acme.cloud.thing, sqlalchemy, wheeled

def word(_):
    import acme.cloud.thing, sqlalchemy, wheeled
    return f"{wheeled.WORD} {acme.cloud.thing.WORD} {sqlalchemy.WORD}"

print(word(0), SparkSession.builder.getOrCreate().sparkContext.parallelize([0], 1).map(word).collect())
import not_anywhere.at_all
"""
EXIT_3 = f"import sys; print('secret', {SECRET!r}); sys.exit(3)"
RAISES = "def f():\n    raise ValueError('no such day')\nf()\n"
DELETES_ITS_PLACE = """
import os, shutil
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, "s3a://lake/tidy") as sw:
    spark.range(7).write.format("delta").mode("append").save(sw.table)
    sw.success()
shutil.rmtree(os.path.dirname(os.environ["SOAL_JOURNAL"]))
"""
NO_NUMBER = """
from pyspark.sql import SparkSession
SparkSession.builder.config("spark.sql.shuffle.partitions", "two").getOrCreate().range(3).count()
"""
FULL_HEAP = """
from pyspark import SparkConf, SparkContext
context = SparkContext(conf=SparkConf().setMaster("spark://nowhere:7077").set("spark.ui.enabled", "true"))
keep = [context._jvm.java.lang.StringBuilder(100_000_000) for _ in range(100)]
"""
ESCAPES_AND_DIES = """
import os, subprocess, sys
code = "import os, time; os.fork() and os._exit(0); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
os.kill(os.getpid(), 9)
"""
WAITS = """
import os, sys, time
place = sys.argv[1]
open(place + "/running", "w").close()
while not os.path.exists(place + "/done"): time.sleep(0.01)
"""
SHOWS_ITS_EVENT = """
import json, os, sys
assert sys.argv[1] == "--event-file" and sys.argv[2] == os.environ["SOAL_EVENT_FILE"]
print("event", json.load(open(sys.argv[2]))["detail"])
"""
