"""Two jobs for one JVM: the first leaves everything that it can, the second reports what it finds."""

from __future__ import annotations

PROBE = """
import json, os, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.getOrCreate()
sc, jvm = spark.sparkContext, spark._jvm
random = getattr(getattr(jvm.scala.util, "Random$"), "MODULE$")
counted = jvm.org.apache.spark.util.AccumulatorContext.numAccums()  # later there are this job's own
lake = sys.argv[1]

def module(_):
    try:
        import left_behind
        return left_behind.VALUE
    except ImportError:
        return "none"

def variable(_):
    import os
    return os.environ.get("LEFT_BEHIND", "none") + " " + os.environ["SOAL_RUN_ID"]

def drawn(seed, count):
    state, numbers = (seed ^ 0x5DEECE66D) & (1 << 48) - 1, set()
    for _ in range(count):
        state = (state * 0x5DEECE66D + 11) & (1 << 48) - 1
        numbers.add(state >> 16)
    return numbers

row = spark.range(1).select(F.udf(module)("id"), F.udf(variable)("id")).collect()[0]
found = {
    "conf": [spark.conf.get(f"spark.sql.{key}", None) for key in ("ansi.enabled", "shuffle.partitions", "left")],
    "core": [sc.getConf().get(key) for key in ("spark.left.behind", "spark.sql.catalog.left")],
    "views": [spark.catalog.tableExists(name) for name in ("left", "global_temp.left")],
    "databases": sorted(one.name for one in spark.catalog.listDatabases()),
    "tables": sorted(one.name for one in spark.catalog.listTables()),
    "functions": spark.catalog.functionExists("left_behind"),
    "cached": jvm.org.apache.spark.SparkContext.getOrCreate().getPersistentRDDs().size(),
    "streams": len(spark.streams.active),
    "files": [sc._jsc.sc().listFiles().size(), sc._jsc.sc().listJars().size()],
    "file system": jvm.org.apache.hadoop.fs.FileSystem.get(
        jvm.java.net.URI("s3a://left"), sc._jsc.hadoopConfiguration()
    ).getConf().get("left.behind"),
    "hadoop": sc._jsc.hadoopConfiguration().get("left.behind"),
    "properties": [jvm.System.getProperty(key) for key in ("left.behind", "spark.left.behind")],
    "zone": jvm.java.util.TimeZone.getDefault().getID(),
    "locale": str(jvm.java.util.Locale.getDefault()),
    "level": str(jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel()),
    "group": [sc.getLocalProperty(key) for key in ("spark.jobGroup.id", "left.behind")],
    "variables": sorted(name for name in os.environ if "LEFT" in name),
    "module": row[0],
    "worker": [row[1].split()[0], row[1].split()[1] == os.environ["SOAL_RUN_ID"]],
    "work": sorted(os.listdir(".")),
    "scratch": sorted(name for name in os.listdir(tempfile.gettempdir()) if "left" in name),
    "home": sorted(os.listdir(os.environ["HOME"])),
    "names": sorted(name for name in globals() if name.startswith("left")),
    "login": jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser().getCredentials().numberOfSecretKeys(),
    "levels": str(jvm.java.util.logging.Logger.getLogger("left.behind").getLevel()),
    "resources": "left-behind.xml" in jvm.org.apache.hadoop.conf.Configuration(False).toString(),
    "more resources": "left-behind.xml" in sc._jsc.hadoopConfiguration().toString(),
    "draws the left numbers": (random.nextInt() & 0xFFFFFFFF) in drawn(7, 100_000),
    "security": [jvm.java.security.Security.getProperty(key) for key in ("left.behind", "networkaddress.cache.ttl")],
}
print("FOUND " + json.dumps(found))
print("HELD", jvm.java.lang.ProcessHandle.current().pid())
print("COUNTED", counted)
"""

LEAVES = """
import os, sys, tempfile
os.environ["LEFT_BEHIND"] = "driver"
open("left_behind.py", "w").write("VALUE = 'left'")
open(os.path.join(os.environ["HOME"], "left"), "w").write("x")
from pyspark.sql import SparkSession, functions as F

spark = (
    SparkSession.builder.config("spark.left.behind", "1").config("spark.sql.ansi.enabled", "false")
    .config("spark.sql.catalog.left", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.left.type", "hadoop").config("spark.sql.catalog.left.warehouse", "/nowhere")
    .getOrCreate()
)
sc, jvm = spark.sparkContext, spark._jvm
spark.conf.set("spark.sql.shuffle.partitions", "99")
spark.conf.set("spark.sql.left", "1")
frame = spark.range(100)
frame.createOrReplaceTempView("left")
frame.createOrReplaceGlobalTempView("left")
spark.sql("CREATE DATABASE other")
spark.sql(f"CREATE TABLE kept USING parquet LOCATION '{tempfile.gettempdir()}/left' AS SELECT 1 AS one")
spark.catalog.setCurrentDatabase("other")
frame.cache().count()
sc.parallelize(range(10)).cache().count()
sc.addPyFile(os.path.abspath("left_behind.py"))
sc.accumulator(1)
sc._jsc.hadoopConfiguration().set("left.behind", "1")
jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI("s3a://left"), sc._jsc.hadoopConfiguration())
sc.setJobGroup("left", "left")
sc.setLocalProperty("left.behind", "1")
sc.setLogLevel("ERROR")
jvm.System.setProperty("left.behind", "1")
jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("Asia/Tokyo"))
jvm.java.util.Locale.setDefault(jvm.java.util.Locale("tr"))
users = jvm.org.apache.hadoop.security.UserGroupInformation
credentials = jvm.org.apache.hadoop.security.Credentials()
credentials.addSecretKey(jvm.org.apache.hadoop.io.Text("left.behind"), b"secret")
users.getLoginUser().addCredentials(credentials)
logger = jvm.java.util.logging.Logger.getLogger("left.behind")
logger.setLevel(jvm.java.util.logging.Level.FINEST)
jvm.org.apache.hadoop.conf.Configuration.addDefaultResource("left-behind.xml")
jvm.java.security.Security.setProperty("left.behind", "1")
jvm.java.security.Security.setProperty("networkaddress.cache.ttl", "0")
getattr(getattr(jvm.scala.util, "Random$"), "MODULE$").setSeed(7)
spark.udf.register("left_behind", lambda value: value, "int")

def dirty(value):
    import os, sys
    os.environ["LEFT_BEHIND"] = "worker"
    sys.modules["left_behind"] = type(sys)("left_behind")
    sys.modules["left_behind"].VALUE = "worker"
    return value

spark.range(4).select(F.udf(dirty, "long")("id")).collect()
spark.readStream.format("rate").load().writeStream.format("memory").queryName("left").start()
print("HELD", jvm.java.lang.ProcessHandle.current().pid())
"""

STOPS = """
from pyspark.sql import SparkSession
first = SparkSession.builder.config("spark.sql.shuffle.partitions", "5").getOrCreate()
first.range(3).count()
first.stop()
second = SparkSession.builder.getOrCreate()
assert second.range(3).count() == 3
print("HELD", second._jvm.java.lang.ProcessHandle.current().pid())
second.stop()
"""

ENDINGS = {
    "a thread of its own": """
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate()._jvm.py4j.GatewayServer(None, 0).start()
""",
    "delayed work": """
from pyspark.sql import SparkSession
jvm = SparkSession.builder.getOrCreate()._jvm
later = jvm.java.util.concurrent.TimeUnit.HOURS
jvm.java.util.concurrent.CompletableFuture().orTimeout(1, later)
""",
    "an open block": """
import os, sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
block = SafeWriter(spark, "s3a://lake/open", commit_point="write").__enter__()
spark.range(3).write.format("delta").mode("append").save(block.table)
os._exit(0)
""",
    "a write without its success": """
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, "s3a://lake/undone", commit_point="success") as block:
    spark.range(3).write.format("delta").mode("append").save(block.table)
""",
    "a security provider": """
from pyspark.sql import SparkSession
jvm = SparkSession.builder.getOrCreate()._jvm
jvm.java.security.Security.removeProvider("SunPCSC")
""",
    "a proxy for all": """
from pyspark.sql import SparkSession
jvm = SparkSession.builder.getOrCreate()._jvm
jvm.java.net.CookieHandler.setDefault(jvm.java.net.CookieManager())
""",
    "a secret of its own": """
from pyspark.sql import SparkSession
SparkSession.builder.config("spark.hadoop.fs.s3a.bucket.theirs.secret.key", "hunter22hunter22").getOrCreate().stop()
""",
    "a secret in Hadoop's configuration": """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sparkContext._jsc.hadoopConfiguration().set("fs.s3a.bucket.theirs.secret.key", "hunter22hunter22")
""",
    "a failure": "raise ValueError('no')",
    "another exit code": "import sys; sys.exit(3)",
    "Java's end": """
from pyspark.sql import SparkSession
try:
    SparkSession.builder.getOrCreate()._jvm.System.exit(0)
except Exception:
    pass
""",
    "a process that goes on": """
import subprocess
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate()
subprocess.Popen(["sleep", "600"], start_new_session=True)
""",
    "a full heap": """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
jvm = spark._jvm
jvm.java.sql.DriverManager.setLogWriter(jvm.java.io.PrintWriter(jvm.java.io.CharArrayWriter(300 << 20)))
""",
}
"""Jobs after which the JVM must not run another one."""

IN_PARTS = """
import sys
import safewriter.backfill
from pyspark.sql import SparkSession
from safewriter import parts

now = [0.0]
safewriter.backfill.monotonic = lambda: now[0]
spark = SparkSession.builder.getOrCreate()
print("HELD", spark._jvm.java.lang.ProcessHandle.current().pid())
for part in parts(spark, sys.argv[1], ["a", "b", "c"]):
    with part as sw:
        spark.range(3).write.format("delta").mode("append").save(sw.table)
        sw.success()
    now[0] += 10**6  # as if no other part fitted into the attempt
"""
