"""The job's function and the sweeper on an S3 that enforces the policies of the synthesised stack's roles.

One scenario: a job makes a table, is refused a second commit, has a write undone, and dies with its handler after a
commit that does not count yet. Its retry begins. Another job, in a turn, dies after staging rows for an Iceberg table.
Two builds of snapshots die, one before and one after its publication. The sweeper settles and cleans up. The needs of
the requests are stored for test_access.py, which makes each of them in an account that enforces the deployed roles.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from handler.functions import sweeper
from safewriter.deadline import Deadline, epoch_ms
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Checkpoint, CommitPoint
from safewriter.record.marker import Marker
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.rie import LambdaEmulator
from scripts.tables import iceberg as iceberg_table
from soal.local.names import CREDENTIALS
from soal.testing.s3 import EmbeddedS3
from soal.testing.s3.wire import OBSERVER
from tests.support.empty_log import needs_of_settling
from tests.support.fencing import needs_of_fencing
from tests.support.guarded_s3 import Permissions
from tests.support.roles import CHECKPOINTS, JOB, LAKE, REQUESTS, ROLES, SCRIPTS, SWEEPER, kept_needs, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.functions.sweeper import SweepResult

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(900)]

TABLE = f"s3a://{LAKE}/tables/t"

# The image has no psutil.
KILLING = """
import os, signal

def kill_all():
    # This process and all above it up to the handler, that one first.
    processes = [os.getpid()]
    while b"awslambdaric" not in open(f"/proc/{processes[-1]}/cmdline", "rb").read():
        with open(f"/proc/{processes[-1]}/stat") as told:
            processes.append(int(told.read().rpartition(")")[2].split()[1]))
    for process in reversed(processes):
        os.kill(process, signal.SIGKILL)
"""

SCRIPT = f"""{KILLING}
import pathlib, sys
died = pathlib.Path(sys.argv[1])
if died.exists():
    sys.exit(0)

from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.getOrCreate()
rows = spark.range(3)

with SafeWriter(spark, "{TABLE}", step="makes the table") as sw:
    rows.write.format("delta").mode("append").save(sw.table)
    sw.success()
try:
    with SafeWriter(spark, "{TABLE}", step="is undone") as sw:
        rows.write.format("delta").mode("append").save(sw.table)
        rows.write.format("delta").mode("append").save(sw.table)
except Exception as error:
    print(error)
with SafeWriter(spark, "{TABLE}", step="dies", commit_point="success") as sw:
    rows.write.format("delta").mode("append").save(sw.table)
    died.touch()
    kill_all()
"""

SNAPSHOT_SCRIPT = f"""{KILLING}
import sys

from pyspark.sql import SparkSession
from safewriter.snapshots import WriteConfig, binary_col, write_sharded
from safewriter.snapshots.write.session import SnapshotSession

spark = SparkSession.builder.getOrCreate()
rows = spark.range(10).selectExpr("id", "'v' AS v")
config = WriteConfig(num_dbs=2, s3_prefix="s3://{LAKE}/tables/snapshots")
write_sharded(rows, config, key_col="id", value_spec=binary_col("v"), step="lives")
publish = SnapshotSession.publish

def die(session):
    if sys.argv[1] == "after":
        publish(session)
    kill_all()

SnapshotSession.publish = die
write_sharded(rows, config, key_col="id", value_spec=binary_col("v"), step="dies")
"""

ICE = "lake.db.t"

ICE_SCRIPT = f"""{KILLING}
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE {ICE} (id LONG) USING iceberg")
spark.range(3).writeTo("{ICE}").append()
with SafeWriter(spark, "{ICE}", format="iceberg") as sw:
    spark.range(3, 6).writeTo(sw.table).append()
    kill_all()
"""


@dataclass(frozen=True)
class Scenario:
    """The results of the scenario."""

    s3: EmbeddedS3
    permissions: Permissions
    sweeps: tuple[SweepResult, SweepResult]
    retried: str
    ice_rows: int


def environment(s3: EmbeddedS3, role: str) -> dict[str, str]:
    return {**s3.environment(), "AWS_ACCESS_KEY_ID": role, "SW_CHECKPOINT_BUCKET": CHECKPOINTS}


def leave_behind(s3: EmbeddedS3) -> None:
    """Put the remains of a killed attempt: a file, an unfinished upload, a marker without a document."""
    observer = s3.observer()
    keys = s3.keys(CHECKPOINTS, "checkpoints/")
    bodies = [observer.get_object(Bucket=CHECKPOINTS, Key=key)["Body"].read() for key in keys]
    (dead,) = (document for document in map(Checkpoint.from_bytes, bodies) if document.step == "dies")
    observer.put_object(Bucket=LAKE, Key=f"tables/t/{dead.attempt.prefix}-left.parquet", Body=b"left")
    observer.create_multipart_upload(Bucket=LAKE, Key=f"tables/t/{dead.attempt.prefix}-unfinished.parquet")
    write = Write(Run("unclaimed", "run-id"), canonical_table(f"s3://{LAKE}/tables/unclaimed"), "delta", None)
    marker = Marker.of(write, Attempt.draw(), CommitPoint.WRITE, started_ms=0, deadline_ms=epoch_ms() - 3_600_000)
    Checkpoints(S3ObjectStore(observer, CHECKPOINTS)).mark(marker)


def sweep(s3: EmbeddedS3, catalog_uri: str) -> SweepResult:
    with pytest.MonkeyPatch.context() as patch:
        variables = {**environment(s3, SWEEPER), **with_catalog(catalog_uri)}
        for name, value in variables.items():
            patch.setenv(name, value)
        return sweeper.handle(variables, Deadline(epoch_ms() + 60_000, epoch_ms()))


def with_catalog(uri: str) -> dict[str, str]:
    prefix = "spark.sql.catalog.lake"
    conf = {prefix: "org.apache.iceberg.spark.SparkCatalog", f"{prefix}.type": "rest", f"{prefix}.uri": uri}
    return {"SOAL_CONF": json.dumps(conf)}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    permissions = Permissions(ROLES, catalog=CREDENTIALS["AWS_ACCESS_KEY_ID"])
    died: Path = tmp_path_factory.mktemp("permissions") / "died"
    event = {
        "entryPoint": f"s3://{SCRIPTS}/job.py",
        "entryPointArguments": [str(died)],
        "clientToken": "permissions",
    }
    with (
        EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], rules=[permissions.rule()]) as s3,
        RestCatalog(s3, died.parent, f"s3a://{LAKE}/tables/warehouse") as catalog,
    ):
        s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=SCRIPT.encode())
        s3.observer().put_object(Bucket=SCRIPTS, Key="ice.py", Body=ICE_SCRIPT.encode())
        s3.observer().put_object(Bucket=SCRIPTS, Key="snapshot.py", Body=SNAPSHOT_SCRIPT.encode())
        turns = json.dumps({"ice": {"ice": {"script": f"s3://{SCRIPTS}/ice.py"}}})
        variables = {**environment(s3, JOB), **with_catalog(catalog.uri), "SOAL_TURNS": turns}
        # Building a snapshot needs PyArrow, which the slim variant lacks.
        with LambdaEmulator(variables, timeout_s=250, memory_mb=1536, python=Path(sys.executable)) as emulator:
            emulator.invoke(event)
            assert died.exists(), emulator.tail()
            leave_behind(s3)
            s3.wire.clock_ahead_s = 30  # the leases of the dead have expired, their deadline has not
            retried = emulator.invoke(event)
            coordination = {"lock.name": "ice", "name": "ice"}
            emulator.invoke(
                {"entryPoint": f"s3://{SCRIPTS}/ice.py", "clientToken": "ice", "coordination": coordination}
            )
            for moment in ("before", "after"):
                emulator.invoke(
                    {
                        "entryPoint": f"s3://{SCRIPTS}/snapshot.py",
                        "entryPointArguments": [moment],
                        "clientToken": f"snapshot-{moment}",
                    }
                )
        s3.wire.clock_ahead_s = 60
        settled = sweep(s3, catalog.uri)
        s3.wire.clock_ahead_s = 25 * 3600  # the marker of the attempt that has not claimed may go
        swept = (settled, sweep(s3, catalog.uri))
        seen = iceberg_table.view(s3.observer(), {"type": "rest", "uri": catalog.uri}, ICE)
        yield Scenario(s3, permissions, swept, json.dumps(retried.payload), seen.rows)


def test_nothing_that_is_needed_is_refused(scenario: Scenario) -> None:
    """No request of handler, guard, Spark or sweeper was denied, except one that may be: S3A checks a directory's
    parents for objects, and stops where it has no right.
    """
    refused = {(need.action, need.resource) for need in scenario.permissions.denied}

    assert refused <= {("s3:GetObject", f"arn:aws:s3:::{LAKE}/tables")}


def test_the_job_its_retry_and_the_sweeper_come_to_their_ends(scenario: Scenario) -> None:
    """One batch is in the table, two are not, the retry has succeeded, and nothing is left behind."""
    first, second = scenario.sweeps
    credentials = {**CREDENTIALS, "AWS_ACCESS_KEY_ID": OBSERVER, "AWS_ENDPOINT_URL": scenario.s3.endpoint}
    table = DeltaTable(TABLE, storage_options={**credentials, "AWS_ALLOW_HTTP": "true"})

    assert '"state": "SUCCESS"' in scenario.retried
    assert (first.rolled_back, first.committed, first.failed, first.unreadable) == (3, 1, 0, 0)
    assert (first.unclaimed, second.unclaimed) == (1, 1)
    assert scenario.ice_rows == 3
    assert (second.failed, second.unclean, second.left) == (0, 0, 0)
    assert sum(table.get_add_actions(flatten=True)["num_records"].to_pylist()) == 3
    assert scenario.s3.keys(CHECKPOINTS, "open/") == ()
    assert scenario.s3.observer().list_multipart_uploads(Bucket=LAKE).get("Uploads", []) == []
    assert [key for key in scenario.s3.keys(LAKE) if "left" in key or key.endswith(".tmp")] == []


def test_every_commit_would_pass_a_bucket_that_demands_conditions(scenario: Scenario) -> None:
    """Spark, the gate, a fence and an undo all put log entries with If-None-Match, as `conditional_commits` asks."""
    commits = [
        exchange
        for exchange in scenario.s3.trace()
        if exchange.operation == "PutObject" and exchange.key_class == "delta_log/commit"
    ]

    assert len(commits) > 3
    assert {exchange.condition for exchange in commits} == {"If-None-Match: *"}


def test_the_requests_are_those_that_are_kept(scenario: Scenario, tmp_path: Path) -> None:
    """test_access.py checks every policy change by the stored requests, so they must be current."""
    seen = kinds([*scenario.permissions.needs, *needs_of_settling(), *needs_of_fencing()])
    fresh = tmp_path / "requests.json"
    rows = [json.dumps([need.role, need.action, need.resource, need.prefix]) for need in seen]
    fresh.write_text("[\n" + ",\n".join(rows) + "\n]\n")

    assert set(seen) <= set(kept_needs()), f"if that is meant: cp {fresh} {REQUESTS}"
