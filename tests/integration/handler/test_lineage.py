"""OpenLineage's listener, as image/derived adds it, tells of a guarded job's tables, and leaves the guard as it is."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from handler.outcome.result import Result
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.rie import LambdaEmulator
from scripts.provision.__main__ import main as setup
from scripts.provision.place import ROOT
from soal.testing.s3 import EmbeddedS3
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.matrix,  # it fetches the jars of image/derived
    pytest.mark.timeout(900),
]

CHECKPOINTS, SCRIPTS, LAKE = "checkpoints", "scripts", "lake"
DELTA, ICEBERG, SOURCE = f"s3a://{LAKE}/orders", "lake.db.orders", f"s3a://{LAKE}/raw/orders.csv"
SCRIPT = f"""
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.appName("nightly").getOrCreate()
frame = spark.read.csv("{SOURCE}", header=True)
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
spark.sql("CREATE TABLE IF NOT EXISTS {ICEBERG} (id STRING) USING iceberg")
with SafeWriter(spark, "{DELTA}", format="delta") as sw:
    frame.write.format("delta").mode("append").save(sw.table)
    sw.success()
with SafeWriter(spark, "{ICEBERG}", format="iceberg") as sw:
    frame.writeTo(sw.table).append()
    sw.success()
"""

(SHOWN,) = (
    json.loads(text)
    for text in re.findall(r"```text\n(\{.*?\})\n```", (ROOT / "docs/guides/image.md").read_text(), re.DOTALL)
)


class Backend:
    """A lineage server: it keeps what it is sent."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        events = self.events

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the jars of image/derived behind the image's, as its Dockerfile puts them."""
    assert setup(["--only", "derived"]) == 0
    made = tmp_path / "home"
    made.mkdir()
    for entry in (ROOT / ".soal").iterdir():
        made.joinpath(entry.name).symlink_to(entry)
    made.joinpath("extra").symlink_to(ROOT / ".soal" / "derived")
    return made


def datasets(told: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["namespace"], each["name"]) for each in told}


def test_the_listener_tells_which_tables_a_guarded_job_reads_and_writes(
    backend: Backend, home: Path, tmp_path: Path
) -> None:
    """Both tables get their rows once, the second job finds a warm JVM, and the server hears of the Delta table, and of
    what is read for both.
    """
    prefix = "spark.sql.catalog.lake"
    with (
        EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE]) as s3,
        RestCatalog(s3, tmp_path, f"s3a://{LAKE}/warehouse") as catalog,
    ):
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=SCRIPT.encode())
        s3.observer().put_object(Bucket=LAKE, Key="raw/orders.csv", Body=b"id\n1\n2\n")
        conf = {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "rest",
            f"{prefix}.uri": catalog.uri,
            **SHOWN,
            "spark.openlineage.transport.url": backend.url,
        }
        variables = {
            **s3.environment(),
            "SOAL_HOME": str(home),
            "SOAL_CONF": json.dumps(conf),
            "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        }
        with LambdaEmulator(variables, timeout_s=BUSY_S, memory_mb=2048) as emulator:
            results = []
            for token in ("first", "second"):
                answer = emulator.invoke({"entryPoint": f"s3://{SCRIPTS}/job.py", "clientToken": token})
                assert answer.error is None, answer.error
                results.append(Result.model_validate(answer.payload))
    for result in results:
        assert [(write.status, write.rows) for write in result.writes] == [("committed", 2)] * 2
    assert [result.warm_start for result in results] == [False, True]

    done = [event for event in backend.events if event["eventType"] == "COMPLETE"]
    edges = [(datasets(event["inputs"]), datasets(event["outputs"])) for event in done]
    assert edges.count(({("s3://lake", "raw/orders.csv")}, {("s3://lake", "orders")})) == 2
    # The limit that docs/guides/image.md tells: a block's own catalog has no warehouse by which the table has a name.
    assert not any(read and ("s3://lake", "warehouse/db/orders") in written for read, written in edges)
