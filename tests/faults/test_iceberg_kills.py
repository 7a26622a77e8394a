"""SIGKILL of all processes at mutating requests of a guarded write to an Iceberg table, recovery, retry."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from soal.testing.s3.rules import Kill, Rule
from tests.faults.case import ANY, Phase, faults_at_every_boundary, thaw_after_the_retry
from tests.faults.iceberg_case import BASE, DATA, TOLD, IcebergCase
from tests.faults.iceberg_victim import STATEMENTS
from tests.faults.victims import DEADLINE_MS
from tests.support.network_faults import Freeze, Late
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = 200
SEED = 20261121


@pytest.mark.matrix
@pytest.mark.parametrize("catalog", ["rest"], indirect=True)
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
    *,
    record_property: Callable[[str, object], None],
) -> None:
    """The campaign's live tier hits the same statements on a catalog in a SQLite file."""
    hit = faults_at_every_boundary(
        s3, iceberg_victims, phase, lambda: IcebergCase(spark, s3, catalog, name), run_key, monkeypatch
    )
    record_property("faults", hit)
    assert hit >= 7  # marker, document, data, manifest, list, publication, verdict


@pytest.mark.parametrize("catalog", ["lite"], indirect=True)
@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        pytest.param("after the data", "rolled_back", marks=pytest.mark.matrix),
        ("after its metadata file", "rolled_back"),
        ("before the verdict", "committed"),
    ],
)
def test_a_kill_at_the_boundaries_that_matter_most(
    spark: SparkSession,
    s3: EmbeddedS3,
    catalog: Catalog,
    iceberg_victims: Victims,
    run_key: str,
    place: str,
    verdict: str,
) -> None:
    """The data file, the metadata file before the database references it, and the verdict after that."""
    case = IcebergCase(spark, s3, catalog, "append")
    with iceberg_victims.take(ahead=False) as victim:
        rule = {
            "after the data": Rule(DATA, Kill("after", victim.kill)),
            "after its metadata file": Rule(case.publication, Kill("after", victim.kill)),
            "before the verdict": Rule(TOLD, Kill("before", victim.kill), nth=2),
        }[place]
        s3.wire.add(rule)
        victim.tell(case.order(run_key))
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    assert len(case.ice.history()) == (2 if verdict == "committed" else 1)
    case.recover()
    assert case.ice.document().status == verdict
    case.retry()


@pytest.mark.parametrize("catalog", ["rest"], indirect=True)
def test_a_publication_that_lands_after_recovery_changes_nothing(
    spark: SparkSession, s3: EmbeddedS3, catalog: Catalog, iceberg_victims: Victims, run_key: str
) -> None:
    """The fence is there first, so the server refuses; so it does after the retry's publication."""
    case = IcebergCase(spark, s3, catalog, "append")
    with iceberg_victims.take(ahead=False) as victim:
        late = Late(end=victim.kill)
        rule = s3.wire.add(Rule(case.publication, late))
        victim.tell(case.order(run_key))
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    case.recover()
    assert case.ice.document().status == "rolled_back"
    assert [reply.status for reply in late.release()] == [409]
    case.check()
    case.retry()


@pytest.mark.matrix
@pytest.mark.parametrize("held", ["data", "publication"])
def test_a_frozen_writer_that_thaws_after_the_retry_changes_nothing(
    spark: SparkSession, s3: EmbeddedS3, catalog: Catalog, iceberg_victims: Victims, run_key: str, held: str
) -> None:
    """SIGSTOP before the request, recovery and retry elsewhere, SIGCONT: the writer notices that it lost the write."""
    case = IcebergCase(spark, s3, catalog, "append")
    with iceberg_victims.take(ahead=False) as victim:
        thaw_after_the_retry(case, victim, DATA if held == "data" else case.publication, 1, run_key)
    assert len(case.ice.refs()) == 2, "main, and the fence of the one that stood still"


@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_main_shows_what_was_published_and_nothing_else_over_random_kills(
    spark: SparkSession,
    s3: EmbeddedS3,
    catalog: Catalog,
    iceberg_victims: Victims,
    run_key: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Two hundred kills at random moments, each beside an append of a live writer; after each the sweeper runs, and
    each snapshot of main belongs to a committed write.
    """
    chance = random.Random(SEED)  # noqa: S311 - the same kills for everybody
    case = IcebergCase(spark, s3, catalog, "append")
    killed, committed = 0, 0
    for number in range(KILLS):
        s3.wire.clock_ahead_s = 0
        with iceberg_victims.take() as victim, ThreadPoolExecutor(1) as pool:
            kill = s3.wire.add(Rule(ANY, Freeze(victim.kill), nth=chance.randint(1, 20)))
            victim.tell(case.order(f"{run_key}-{number}"))
            survivor = pool.submit(case.write_one, 1000 + number)
            killed += victim.end() != 0
            survivor.result()
            s3.wire.clear_rules()
            # Pending requests have arrived before the clock passes the grace.
            assert not kill.hits or kill.fired(timeout_s=BUSY_S)
            assert until(lambda: s3.wire.is_quiet)
        s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        case.sweep()
        statuses = [document.status for document in case.ice.documents()]
        assert set(statuses) <= {"committed", "rolled_back"}
        committed = sum(status == "committed" for status in statuses)
        assert len(case.ice.history()) == 1 + committed
        assert case.ice.strays() == set()
    record_property("faults", killed)
    assert killed > KILLS // 4
    landed = committed - KILLS
    rows = [*BASE, *range(1000, 1000 + KILLS), *(id_ for id_ in range(2, 9) for _ in range(landed))]
    assert case.ids() == tuple(sorted(rows))
    case.ice.check()
