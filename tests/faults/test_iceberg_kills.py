"""SIGKILL of everything at every mutating S3 request of a guarded write to an Iceberg table, recovery, retry.

The catalog's own commits lie between two of these requests: a metadata file, and whatever comes next.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Literal, cast

import pytest

from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.recovery import Recovery
from safewriter.sweeping import Action, Sweeper
from safewriter.writer import SafeWriter
from scripts.emulator.rules import Kill, Late, LoseReply, Match, Rule
from tests.faults.conftest import DEADLINE_MS
from tests.faults.iceberg_victim import STATEMENTS
from tests.support.ice import Ice
from tests.support.lake import CHECKPOINTS
from tests.support.processes import Child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

Phase = Literal["before", "after", "late", "lost"]
BOUNDARIES_MAX = 40
ANY = Match(is_mutating=True)
DATA = Match(operations={"PutObject"}, key=r"/data/.*\.parquet")
METADATA = Match(operations={"PutObject"}, key=r"\.metadata\.json")
BASE = tuple(range(5))
AFTER = {
    "append": tuple(sorted((*BASE, *range(2, 9)))),
    "merge": (0, 1, 5, 6, 7, 8, 102, 103, 104),
}


class Case:
    """One table, one run, and everything that is done to them after the fault."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, database: str, name: str) -> None:
        self.spark, self.s3, self.name = spark, s3, name
        self.ice = Ice(s3.observer(), database, f"lite.db.t{uuid.uuid4().hex}")
        # Set before, so that the block need not do it: one boundary less in each run.
        properties = "TBLPROPERTIES ('write.wap.enabled' = 'true')"
        spark.sql(f"CREATE TABLE {self.ice.name} (id LONG) USING iceberg {properties}")
        spark.range(BASE[0], BASE[-1] + 1, 1, 1).writeTo(self.ice.name).append()

    def order(self, run_key: str, commit_point: str = "write") -> str:
        return f"{self.ice.name} {run_key} {self.name} {commit_point}"

    def ids(self) -> tuple[int, ...]:
        self.spark.catalog.refreshTable(self.ice.name)
        return tuple(sorted(row.id for row in self.spark.table(self.ice.name).collect()))

    def recover(self) -> None:
        """Let the store's clock pass deadline and grace, let the sweeper come twice, without Spark, and check."""
        self.s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        self.sweep()
        history = self.ice.history()
        self.sweep()
        assert self.ice.history() == history
        self.check()

    def sweep(self) -> None:
        recovery = Recovery(self.ice.checkpoints, table_store, clock=epoch_ms)
        sweep = Sweeper(self.ice.checkpoints, recovery, epoch_ms, may_go_on=lambda: True).sweep()
        assert sweep.count(Action.FAILED, Action.UNREADABLE, Action.LEFT, Action.UNCLEAN) == 0, sweep.looks

    def check(self) -> None:
        self.ice.check()
        documents = self.ice.documents()
        landed = bool(documents) and documents[0].status == "committed"
        assert self.ids() == (AFTER[self.name] if landed else BASE)
        assert self.ice.refs() == {"main"}, "no branch of a dead attempt is left"

    def retry(self) -> None:
        """The retry brings the batch in exactly once; main's history shows what was published, and nothing else."""
        with SafeWriter(self.spark, self.ice.name, format="iceberg") as block:
            self.spark.sql(STATEMENTS[self.name].format(table=block.table))
            block.success()
        assert block.checkpoint is not None
        Recovery(self.ice.checkpoints, table_store, clock=epoch_ms).clean(block.checkpoint.write_key)
        self.check()
        assert self.ice.document().status == "committed"
        assert len(self.ice.history()) == 2
        assert all(attempt.cleaned for attempt in self.ice.document().attempts)


class Victims:
    """A pool of one, as for Delta."""

    def __init__(self, s3: EmbeddedS3, lite: Path) -> None:
        self._database = str(lite)
        self._environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        self._next: Child | None = None

    def take(self, *, ahead: bool) -> Child:
        """Return a victim that waits for its order; `ahead`: start the next one already."""
        child = self._next or self._start()
        child.expect("ready")
        self._next = self._start() if ahead else None
        return child

    def close(self) -> None:
        if self._next is not None:
            self._next.kill()

    def _start(self) -> Child:
        # Of its own: a whole matrix takes longer than one deadline.
        deadline = {"SOAL_DEADLINE_EPOCH_MS": str(epoch_ms() + DEADLINE_MS)}
        return Child("tests.faults.iceberg_victim", self._database, environment={**self._environment, **deadline})


@pytest.fixture(scope="module")
def iceberg_victims(s3: EmbeddedS3, lite: Path) -> Iterator[Victims]:
    pool = Victims(s3, lite)
    yield pool
    pool.close()


@pytest.mark.matrix
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("phase", ["before", "after", "late", "lost"])
def test_a_fault_at_every_boundary(
    spark: SparkSession,
    s3: EmbeddedS3,
    lite: Path,
    iceberg_victims: Victims,
    phase: Phase,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    run_key: str,
) -> None:
    """Every mutating request of an append and of a MERGE, from the marker to the verdict."""
    hit = 0
    for boundary in range(1, BOUNDARIES_MAX):
        s3.wire.clock_ahead_s = 0
        key = f"{run_key}-{boundary}"
        monkeypatch.setenv("SOAL_RUN_KEY", key)
        case = Case(spark, s3, str(lite), name)
        with iceberg_victims.take(ahead=True) as victim:
            late = Late(end=victim.kill)
            rule = s3.wire.add(Rule(ANY, late if phase == "late" else _fault(phase, victim), nth=boundary))
            victim.tell(case.order(key))
            code = victim.end()
            s3.wire.clear_rules()
        if phase == "lost" and code == 0:
            assert case.ice.document().status == "committed"
        case.recover()
        late.release()
        case.check()
        case.retry()
        if rule.hits == 0:
            assert "acknowledged" in victim.lines, victim.said()
            break
        hit = boundary
    assert hit >= 9  # marker, document, branch, data, manifest, list, staged, picked, published, verdict


def _fault(phase: Phase, victim: Child) -> Kill | LoseReply:
    return LoseReply(503) if phase == "lost" else Kill(cast("Literal['before', 'after']", phase), victim.kill)


@pytest.mark.parametrize(
    ("boundary", "nth", "verdict"),
    [
        pytest.param(DATA, 1, "rolled_back", id="after the data", marks=pytest.mark.matrix),
        pytest.param(METADATA, 2, None, id="while it is staged", marks=pytest.mark.matrix),
        pytest.param(METADATA, 3, "committed", id="while it is published"),
    ],
)
def test_a_kill_at_the_boundaries_that_matter_most(
    spark: SparkSession,
    s3: EmbeddedS3,
    lite: Path,
    iceberg_victims: Victims,
    run_key: str,
    boundary: Match,
    nth: int,
    verdict: str | None,
) -> None:
    """The data file, the metadata file of the staged snapshot, that of the published one, which scripts/test runs."""
    case = Case(spark, s3, str(lite), "append")
    with iceberg_victims.take(ahead=False) as victim:
        rule = s3.wire.add(Rule(boundary, Kill("after", victim.kill), nth=nth))
        victim.tell(case.order(run_key))
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    assert len(case.ice.history()) == 1 or verdict is None, "main is as it was when the killed attempt began"
    case.recover()
    assert verdict is None or case.ice.document().status == verdict
    case.retry()
