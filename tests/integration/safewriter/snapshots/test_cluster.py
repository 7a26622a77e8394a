"""Builds on a Spark cluster of two executors, whose tasks fail, die with their executor, and are speculated."""

from __future__ import annotations

import sys
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil
import pyspark
import pytest

from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.rules import Match, Refuse, Rule
from tests.integration.safewriter.snapshots.cluster_job import ROWS
from tests.support.observed import CHECKPOINTS, LAKE
from tests.support.processes import Child
from tests.support.snapshot_prefix import SnapshotPrefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from soal.testing.s3.exchange import Reply, Request

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.matrix]

SHARD = Match(operations={"PutObject"}, key=r"/shard\.db$")
HOLD_LIMIT_S = 60.0


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as server:
        yield server


@pytest.fixture(scope="module")
def driver(s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    environment = {
        "SPARK_HOME": pyspark.__path__[0],
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # without it no executor starts, and no log says why
        "SPARK_WORKER_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        **s3.environment(),
    }
    with Child("tests.integration.safewriter.snapshots.cluster_job", environment=environment) as child:
        child.expect("ready")
        yield child


@pytest.fixture
def prefix(s3: EmbeddedS3) -> SnapshotPrefix:
    return SnapshotPrefix(s3.observer(), f"snapshots/{uuid.uuid4().hex}")


@dataclass
class Overtaken:
    """Holds the upload of a shard until another task has uploaded the same shard."""

    db_id: str = ""
    other: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]:
        request.body()
        db_id = request.key.split("/")[-3]
        if not self.db_id:
            self.db_id = db_id

            def late() -> Reply:
                assert self.other.wait(HOLD_LIMIT_S)
                return request.apply()

            return late
        reply = request.apply()
        if db_id == self.db_id:
            self.other.set()
        return reply


@dataclass
class KillExecutor:
    """Kills the executor, with its Python workers, that sent the request."""

    driver: Child
    killed: list[int] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        request.body()
        executors = [one for one in self.driver.tree() if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline())]
        for process in [*executors[0].children(recursive=True), executors[0]]:
            process.kill()
            self.killed.append(process.pid)
        return request.apply()


def uploads(s3: EmbeddedS3, prefix: SnapshotPrefix) -> Counter[str]:
    """The number of uploads of each shard."""
    keys = [one.key for one in s3.wire.trace() if SHARD.operations == {one.operation} and prefix.name in one.key]
    return Counter(key.split("/")[-3] for key in keys if key.endswith("/shard.db"))


def repeated_stages(driver: Child) -> int:
    """The number of stages that Spark has repeated so far."""
    said = [line.partition(": ")[2] for line in driver.lines if line.startswith("repeated stages: ")]
    return int(said[-1]) if said else 0


def build(driver: Child, s3: EmbeddedS3, prefix: SnapshotPrefix, rule: Rule | None = None) -> None:
    """Build a snapshot, which is complete and alone in its prefix whatever happened."""
    if rule is not None:
        s3.wire.add(rule)
    driver.tell(prefix.uri)
    driver.expect(f"ended {prefix.uri}")
    assert f"built {prefix.uri}" in driver.lines, driver.said()
    s3.wire.clear_rules()
    found = prefix.published()
    assert found is not None
    assert found.values == {number.to_bytes(8, "big"): f"value {number}".encode() for number in range(ROWS)}
    prefix.check_routing()
    assert prefix.strays() == set()


def test_a_task_that_fails_is_repeated(driver: Child, s3: EmbeddedS3, prefix: SnapshotPrefix) -> None:
    """S3 refuses the upload of a shard permanently; the next attempt has a path of its own."""
    build(driver, s3, prefix, Rule(SHARD, Refuse(403)))
    found = prefix.published()
    assert found is not None
    assert any("/attempt=01-" in url for url in found.urls)


def test_the_copy_of_a_slow_task_may_be_faster(driver: Child, s3: EmbeddedS3, prefix: SnapshotPrefix) -> None:
    """Both upload the shard; one is in the manifest, and the other is removed."""
    overtaken = Overtaken()
    build(driver, s3, prefix, Rule(SHARD, overtaken, times=10_000))
    assert overtaken.other.is_set()
    assert uploads(s3, prefix)[overtaken.db_id] == 2


def test_an_executor_may_die_with_its_tasks_and_its_part_of_the_shuffle(
    driver: Child, s3: EmbeddedS3, prefix: SnapshotPrefix
) -> None:
    """Spark repeats the previous stage, too; no row is lost, doubled or counted twice."""
    kill = KillExecutor(driver)
    before = repeated_stages(driver)
    build(driver, s3, prefix, Rule(SHARD, kill))
    assert kill.killed
    assert repeated_stages(driver) > before
    assert not any(psutil.pid_exists(pid) for pid in kill.killed)


def test_rows_that_come_in_another_order_again_are_not_lost(
    driver: Child, s3: EmbeddedS3, prefix: SnapshotPrefix
) -> None:
    """Their keys are numbers in that order; when an executor dies with its part of the shuffle, the build fails or has
    each row once.
    """
    kill = KillExecutor(driver)
    s3.wire.add(Rule(SHARD, kill))
    driver.tell(f"{prefix.uri} numbered")
    driver.expect(f"ended {prefix.uri}")
    s3.wire.clear_rules()
    assert kill.killed
    found = prefix.published()
    if found is not None:
        assert sorted(found.values.values()) == sorted(f"value {number}".encode() for number in range(ROWS))
