"""SIGKILL of everything at every mutating S3 request of a guarded build of a snapshot, then recovery, then a retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.case import Phase, faults_at_every_boundary, thaw_after_the_retry
from tests.faults.snapshot_case import MANIFEST, POINTER, SHARD, SnapshotCase
from tests.support.network_faults import Late

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.matrix
@pytest.mark.parametrize("is_first", [False, True], ids=["second", "first"])
@pytest.mark.parametrize("phase", ["before", "torn", "after", "late", "lost"])
def test_a_fault_at_every_boundary(
    spark: SparkSession,
    s3: EmbeddedS3,
    snapshot_victims: Victims,
    phase: Phase,
    monkeypatch: pytest.MonkeyPatch,
    run_key: str,
    record_property: Callable[[str, object], None],
    *,
    is_first: bool,
) -> None:
    """The first snapshot of a prefix, and one after another."""
    hit = faults_at_every_boundary(
        s3, snapshot_victims, phase, lambda: SnapshotCase(spark, s3, is_first=is_first), run_key, monkeypatch
    )
    record_property("faults", hit)
    assert hit >= 8  # marker, document, three shards, manifest, pointer, verdict


@pytest.mark.parametrize(
    ("boundary", "phase", "verdict"),
    [
        pytest.param(SHARD, "after", "rolled_back", id="after a shard", marks=pytest.mark.matrix),
        pytest.param(MANIFEST, "after", "rolled_back", id="after the manifest"),
        pytest.param(POINTER, "after", "committed", id="after the pointer"),
    ],
)
def test_a_kill_at_the_boundaries_that_matter_most(
    spark: SparkSession,
    s3: EmbeddedS3,
    snapshot_victims: Victims,
    run_key: str,
    boundary: Match,
    phase: Phase,
    verdict: str,
) -> None:
    """A shard, the manifest that nothing points to, the pointer."""
    case = SnapshotCase(spark, s3)
    with snapshot_victims.take() as victim:
        rule = s3.wire.add(Rule(boundary, Kill("after" if phase == "after" else "before", victim.kill)))
        victim.tell(case.order(run_key))
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    case.recover()
    assert case.prefix.document().status == verdict
    case.retry()


def test_a_first_pointer_that_lands_after_recovery_changes_nothing(
    spark: SparkSession, s3: EmbeddedS3, snapshot_victims: Victims, run_key: str
) -> None:
    """The fence has created `_CURRENT`, which points nowhere yet."""
    case = SnapshotCase(spark, s3, is_first=True)
    with snapshot_victims.take(ahead=False) as victim:
        late = Late(end=victim.kill)
        rule = s3.wire.add(Rule(POINTER, late))
        victim.tell(case.order(run_key))
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    case.recover()
    assert [reply.status for reply in late.release()] == [412]
    assert case.prefix.document().status == "rolled_back"
    case.check()
    case.retry()


@pytest.mark.matrix
@pytest.mark.parametrize("held", [SHARD, POINTER], ids=["shard", "pointer"])
def test_a_frozen_build_that_thaws_after_the_retry_changes_nothing(
    spark: SparkSession, s3: EmbeddedS3, snapshot_victims: Victims, run_key: str, held: Match
) -> None:
    """SIGSTOP before the request, recovery and retry elsewhere, SIGCONT: it finds out by itself that it is over."""
    case = SnapshotCase(spark, s3)
    with snapshot_victims.take(ahead=False) as victim:
        thaw_after_the_retry(case, victim, held, 1, run_key)
    assert case.strays() == set(), "the thawed build has tidied up after itself"
