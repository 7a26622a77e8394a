"""A job of several timeouts: every step exactly once, with and without kills in between."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from scripts.emulator.rest_catalog import RestCatalog
from scripts.local.function import Function
from soal.home import Home
from soal.invocation.report import until_done
from soal.testing.s3 import EmbeddedS3
from tests.support.ice import Catalog, Ice, warehouse
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from soal.invocation.report import Report

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

ROWS = 5
SCRIPTS = "soal-scripts"
JOB = """
import sys, time
from pyspark.sql import SparkSession
from safewriter import SafeWriter
table, lake_format, steps, pause_s, rows = *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
spark = SparkSession.builder.getOrCreate()
for step in range(steps):
    with SafeWriter(spark, table, format=lake_format, step=str(step)) as sw:
        if sw.already_committed:
            continue
        batch = spark.range(step * 100, step * 100 + rows)
        if lake_format == "delta":
            batch.write.format("delta").mode("append").save(sw.table)
        else:
            batch.writeTo(sw.table).append()
        sw.success()
    time.sleep(pause_s)
"""


@dataclass(frozen=True)
class Target:
    """The table of a job: how the job names and finds it, and its reader."""

    lake_format: str
    name: str
    table: Lake | Ice
    conf: dict[str, str]

    def check(self, steps: int) -> None:
        """Check that each step's batch is in the table once."""
        assert self.table.rows() == steps * ROWS
        if isinstance(self.table, Lake):
            assert self.table.operations().count("WRITE") == steps
        else:
            assert len(self.table.history()) == 1 + steps, "before the first there was none, so a block has made one"
            assert all(name == "main" or name.startswith("sw-") for name in self.table.refs())
        assert [document.status for document in self.table.documents()] == ["committed"] * steps
        self.table.check()


@contextlib.contextmanager
def target(s3: EmbeddedS3, folder: Path, lake_format: str) -> Iterator[Target]:
    """Yield a Delta table that the job creates, or an empty Iceberg table in a REST catalog."""
    if lake_format == "delta":
        lake = Lake(s3.observer(), s3.endpoint, "steps")
        yield Target(lake_format, lake.table, lake, {})
        return
    with RestCatalog(s3, folder, warehouse("lake")) as server:
        ice = Ice(s3.observer(), Catalog.rest("lake", server.uri, server.database), "lake.db.steps")
        catalog = load_catalog("lake", **ice.catalog.pyiceberg)
        catalog.create_namespace("db")
        catalog.create_table("db.steps", Schema(NestedField(1, "id", LongType(), required=False)))
        yield Target(lake_format, ice.name, ice, ice.catalog.settings())


def kill_one_function(after_s: float) -> threading.Timer:
    """Kill the function in any state, like a crash of its sandbox."""

    def kill() -> None:
        for process in psutil.Process().children(recursive=True):
            if process.cmdline()[1:3] == ["-m", "awslambdaric"]:  # not the emulator, whose arguments hold it
                tree = [process, *process.children(recursive=True)]
                for one in tree:
                    one.kill()
                return

    timer = threading.Timer(after_s, kill)
    timer.start()
    return timer


@dataclass(frozen=True)
class Course:
    """A job's steps, a pause after each, and the first attempts that are killed.

    `attempts_max` is twice its need on a quiet machine: on a busy one fewer steps fit into an attempt.
    """

    timeout_s: int
    steps: int
    pause_s: float
    kills: int
    attempts_max: int


def run(s3: EmbeddedS3, wanted: Target, course: Course) -> list[Report]:
    """Run the job until it is done; return the attempts' reports."""
    chance = random.Random(7)  # noqa: S311 - the same kills every time
    s3.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=JOB.encode())
    variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SW_WARN_BEFORE_MS": "5000"}
    variables["SOAL_CONF"] = json.dumps(wanted.conf)
    function = Function(variables, course.timeout_s, 1536, Home.of(), lambda _: None)
    event = {
        "entryPoint": f"s3://{SCRIPTS}/job.py",
        "entryPointArguments": [wanted.name, wanted.lake_format, str(course.steps), str(course.pause_s), str(ROWS)],
        "clientToken": uuid.uuid4().hex,
    }
    reports: list[Report] = []

    def invoke(given: object) -> Report:
        after_s = chance.uniform(course.timeout_s / 4, course.timeout_s - 8)
        timer = kill_one_function(after_s) if len(reports) < course.kills else None
        reports.append(function.invoke(given))
        if timer is not None:
            timer.cancel()
            timer.join()
        return reports[-1]

    until_done(invoke, event, attempts_max=course.attempts_max, remark=lambda _: None)
    return reports


@pytest.mark.matrix
@pytest.mark.parametrize("lake_format", ["delta", "iceberg"])
@pytest.mark.parametrize(
    "course",
    [
        pytest.param(Course(20, 3, 6.0, 0, 8), id="two timeouts"),
        pytest.param(Course(40, 5, 6.0, 2, 12), id="two kills"),
        pytest.param(Course(120, 37, 12.0, 2, 12), id="four timeouts and two kills"),
    ],
)
def test_a_job_that_is_longer_than_the_timeout_ends_with_every_step_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake_format: str, course: Course
) -> None:
    """Each attempt skips the committed steps and continues at the first other one."""
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as s3:
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)  # for the reader
        with target(s3, tmp_path, lake_format) as found:
            reports = run(s3, found, course)
            last = reports[-1]
            assert last.result is not None, last.problem
            assert last.result.state == "SUCCESS", last.result.state_details
            assert len(reports) > 1
            assert [write.step for write in last.result.writes] == [str(step) for step in range(course.steps)]
            found.check(course.steps)
