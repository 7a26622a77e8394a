"""SIGKILL of everything at every mutating request, to S3 and to the catalog, of a guarded write to an Iceberg table,
recovery, retry.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from safewriter.tables.iceberg.staging import WRITE
from scripts.emulator.rules import Freeze, Kill, Match, Rule
from tests.faults.case import ANY, Phase, faults_at_every_boundary, thaw_after_the_retry
from tests.faults.iceberg_case import BASE, IcebergCase
from tests.faults.iceberg_victim import STATEMENTS
from tests.faults.victims import DEADLINE_MS
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

DATA = Match(operations={"PutObject"}, key=r"/data/.*\.parquet")
METADATA = Match(operations={"PutObject"}, key=r"\.metadata\.json")
KILLS = 200
SEED = 20261121


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
    late = phase == "late"
    hit = faults_at_every_boundary(
        s3, iceberg_victims, phase, lambda: IcebergCase(spark, s3, catalog, name, lands_late=late), run_key, monkeypatch
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
    case = IcebergCase(spark, s3, catalog, "append", lands_late=True)
    with iceberg_victims.take(ahead=False) as victim:
        thaw_after_the_retry(case, victim, held, 1 if held is DATA else 2, run_key)
    assert case.ice.refs() == {"main"}
    assert case.left() == set(), "it has tidied up after itself"


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
    case = IcebergCase(spark, s3, catalog, "append", lands_late=True)
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
            assert not kill.hits or kill.fired(timeout_s=BUSY_S)
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
    assert case.left() == set()
