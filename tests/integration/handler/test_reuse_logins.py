"""One function, job after job in one JVM, on a catalog with a login: no job finds the token of the one before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.catalog_logins import OAuth
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

WRITES = """
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
spark.sql("CREATE TABLE IF NOT EXISTS lake.db.t (id BIGINT) USING iceberg")
with SafeWriter(spark, "lake.db.t", format="iceberg") as sw:
    spark.range(3).writeTo(sw.table).append()
    sw.success()
print("ROWS", spark.table("lake.db.t").count())
print("HELD", spark._jvm.java.lang.ProcessHandle.current().pid())
"""
LOOKS = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
jvm, gateway = spark._jvm, spark.sparkContext._gateway

def array(kind, *values):
    made = gateway.new_array(kind, len(values))
    for at, value in enumerate(values):
        made[at] = value
    return made

named = jvm.java.lang.Class.forName
names = "javax.management.ObjectName", "java.lang.String", "[Ljava.lang.Object;", "[Ljava.lang.String;"
kinds = map(named, names)
invoke = named("javax.management.MBeanServerConnection").getMethod("invoke", array(jvm.Class, *kinds))
given = array(jvm.Object, array(jvm.String)), array(jvm.String, "[Ljava.lang.String;")
command = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
beans = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
alive = invoke.invoke(beans, array(jvm.Object, command, "gcClassHistogram", *given))  # after a collection
names = [line.split()[3].rpartition(".")[2] for line in alive.splitlines() if "apache.iceberg." in line]
held = {"OAuth2Util$AuthSession", "RESTCatalog", "RESTTableOperations", "HTTPClient"}
print("LEFT", sorted(held & {*names}))
print("HELD", jvm.java.lang.ProcessHandle.current().pid())
"""


def test_a_login_leaves_no_token_and_the_machine_stays(tmp_path: Path) -> None:
    """Iceberg would renew the token in a thread until the JVM's end. Another job has neither it nor its catalog."""
    login = OAuth("client:its-secret")
    with (
        EmbeddedS3(buckets=["checkpoints", "scripts", "lake"]) as s3,
        RestCatalog(s3, tmp_path, "s3a://lake/w") as rest,
    ):
        login.on(s3)
        for name, text in {"writes": WRITES, "looks": LOOKS}.items():
            s3.observer().put_object(Bucket="scripts", Key=f"{name}.py", Body=text.encode())
        catalog = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": rest.uri,
            ".credential": login.client,
            ".oauth2-server-uri": f"{rest.uri}/v1/oauth/tokens",
        }
        conf = json.dumps({f"spark.sql.catalog.lake{key}": value for key, value in catalog.items()})
        variables = {**s3.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_CONF": conf}
        with LambdaEmulator(variables, timeout_s=BUSY_S, memory_mb=1769) as emulator:
            told = [_told(emulator, name) for name in ("writes", "looks", "writes", "looks")]
    assert [one["ROWS"] for one in told[::2]] == ["3", "6"]
    assert [one["LEFT"] for one in told[1::2]] == ["[]", "[]"]
    assert len({one["HELD"] for one in told}) == 1


def _told(emulator: LambdaEmulator, name: str) -> dict[str, str]:
    answer = emulator.invoke({"script": f"s3://scripts/{name}.py"})
    result = Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))
    assert result.state == "SUCCESS", result.state_details
    return dict(line.split(" ", 1) for line in result.log_tail if line.split(" ", 1)[0] in ("ROWS", "LEFT", "HELD"))
