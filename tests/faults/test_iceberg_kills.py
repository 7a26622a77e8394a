"""SIGKILL of everything at every mutating request, to S3 and to the catalog, of a guarded write to an Iceberg table,
recovery, retry.
"""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from safewriter.tables.iceberg.staging import WRITE
from safewriter.writer import SafeWriter
from scripts.emulator.rules import Freeze, Kill, Match, Rule
from tests.faults.case import ANY, Case, Phase, faults_at_every_boundary, thaw_after_the_retry
from tests.faults.iceberg_victim import STATEMENTS
from tests.faults.victims import DEADLINE_MS, Victims

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

DATA = Match(operations={"PutObject"}, key=r"/data/.*\.parquet")
METADATA = Match(operations={"PutObject"}, key=r"\.metadata\.json")
KILLS = 200
SEED = 20261121
BASE = tuple(range(5))
AFTER = {
    "append": tuple(sorted((*BASE, *range(2, 9)))),
    "merge": (0, 1, 5, 6, 7, 8, 102, 103, 104),
}


class IcebergCase(Case):
    """One Iceberg table and one run."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, catalog: Catalog, name: str) -> None:
        self.ice = catalog.table(s3.observer())
        super().__init__(spark, s3, self.ice, name)
        # Set before, so that the block need not do it: one boundary less in each run.
        properties = "TBLPROPERTIES ('write.wap.enabled' = 'true')"
        spark.sql(f"CREATE TABLE {self.ice.name} (id LONG) USING iceberg {properties}")
        spark.range(BASE[0], BASE[-1] + 1, 1, 1).writeTo(self.ice.name).append()

    def order(self, run_key: str, commit_point: str = "write") -> str:
        return f"{self.ice.name} {run_key} {self.name} {commit_point}"

    def write_one(self, id_: int) -> None:
        """Append one row, as a write of its own."""
        with SafeWriter(self.spark, self.ice.name, format="iceberg", step=str(id_)) as block:
            self.spark.range(id_, id_ + 1, 1, 1).writeTo(block.table).append()
            block.success()

    def ids(self) -> tuple[int, ...]:
        self.spark.catalog.refreshTable(self.ice.name)
        return tuple(sorted(row.id for row in self.spark.table(self.ice.name).collect()))

    def check(self) -> None:
        self.ice.check()
        documents = self.ice.documents()
        landed = bool(documents) and documents[0].status == "committed"
        assert self.ids() == (AFTER[self.name] if landed else BASE)

    def recover(self) -> None:
        super().recover()
        assert self.ice.refs() == {"main"}, "no branch of a dead attempt is left"

    def write_again(self) -> SafeWriter:
        with SafeWriter(self.spark, self.ice.name, format="iceberg") as block:
            self.spark.sql(STATEMENTS[self.name].format(table=block.table))
            block.success()
        return block

    def retry(self) -> None:
        """Main's history shows what was published, and nothing else."""
        super().retry()
        assert len(self.ice.history()) == 2
        assert self.ice.refs() == {"main"}, "no branch of a dead attempt is left"
        assert self.ice.orphans() == set(), "no file of any kind is left"


@pytest.fixture(scope="module", params=["lite", "rest"])
def catalog(request: pytest.FixtureRequest) -> Catalog:
    """The commits of `lite` lie between two requests; those of `rest` are requests, and its server makes some, too."""
    found: Catalog = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def iceberg_victims(s3: EmbeddedS3, catalog: Catalog) -> Iterator[Victims]:
    pool = Victims(s3, "tests.faults.iceberg_victim", json.dumps(catalog.settings()))
    yield pool
    pool.close()


@pytest.mark.matrix
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("phase", ["before", "after", "late", "lost"])
def test_a_fault_at_every_boundary(
    spark: SparkSession,
    s3: EmbeddedS3,
    catalog: Catalog,
    iceberg_victims: Victims,
    phase: Phase,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    run_key: str,
) -> None:
    """An append and a MERGE."""
    hit = faults_at_every_boundary(
        s3, iceberg_victims, phase, lambda: IcebergCase(spark, s3, catalog, name), run_key, monkeypatch
    )
    assert hit >= 9  # marker, document, branch, data, manifest, list, staged, picked, published, verdict


@pytest.mark.parametrize("catalog", ["lite"], indirect=True)
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
    catalog: Catalog,
    iceberg_victims: Victims,
    run_key: str,
    boundary: Match,
    nth: int,
    verdict: str | None,
) -> None:
    """The data file, the metadata file of the staged snapshot, that of the published one, which scripts/test runs."""
    case = IcebergCase(spark, s3, catalog, "append")
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


@pytest.mark.matrix
@pytest.mark.parametrize("held", [DATA, METADATA], ids=["data", "while it is staged"])
def test_a_frozen_writer_that_thaws_after_the_retry_changes_nothing(
    spark: SparkSession, s3: EmbeddedS3, catalog: Catalog, iceberg_victims: Victims, run_key: str, held: Match
) -> None:
    """SIGSTOP before the request, recovery and retry elsewhere, SIGCONT: it finds out by itself that it is over."""
    case = IcebergCase(spark, s3, catalog, "append")
    with iceberg_victims.take(ahead=False) as victim:
        thaw_after_the_retry(case, victim, held, 1 if held is DATA else 2, run_key)
    assert case.ice.refs() == {"main"}
    assert case.ice.orphans() == set(), "it has tidied up after itself"


@pytest.mark.matrix
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("catalog", ["lite"], indirect=True)
def test_main_shows_what_was_published_and_nothing_else_over_random_kills(
    spark: SparkSession, s3: EmbeddedS3, catalog: Catalog, iceberg_victims: Victims, run_key: str
) -> None:
    """Two hundred kills at random moments, each beside an append of a writer that lives; after each the sweeper comes.
    No undo is ever needed: each snapshot of main is a committed write's.
    """
    chance = random.Random(SEED)  # noqa: S311 - the same kills for everybody
    case = IcebergCase(spark, s3, catalog, "append")
    killed, committed = 0, set[str]()
    for number in range(KILLS):
        s3.wire.clock_ahead_s = 0
        with iceberg_victims.take() as victim, ThreadPoolExecutor(1) as pool:
            kill = s3.wire.add(Rule(ANY, Freeze(victim.kill), nth=chance.randint(1, 24)))
            victim.tell(case.order(f"{run_key}-{number}", chance.choice(["write", "success"])))
            survivor = pool.submit(case.write_one, 1000 + number)
            killed += victim.end() != 0
            survivor.result()
            s3.wire.clear_rules()
            # What was on its way has arrived before the clock says that the grace is over.
            assert not kill.hits or kill.fired(timeout_s=30)
        s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        case.sweep()
        documents = case.ice.documents()
        assert {document.status for document in documents} <= {"committed", "rolled_back"}
        committed = {document.write_key for document in documents if document.status == "committed"}
        assert {str(one.summary[WRITE]) for one in case.ice.snapshots()[1:] if one.summary is not None} == committed
        assert len(case.ice.history()) == 1 + len(committed)
        assert case.ice.refs() == {"main"}
    assert killed > KILLS // 4
    landed = len(committed) - KILLS
    rows = [*BASE, *range(1000, 1000 + KILLS), *(id_ for id_ in range(2, 9) for _ in range(landed))]
    assert case.ids() == tuple(sorted(rows))
    case.ice.check()
    assert case.ice.orphans() == set()
