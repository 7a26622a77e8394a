"""SIGKILL of all processes at mutating S3 requests of a guarded write, recovery, a retry, on real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from safewriter.writer import SafeWriter
from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.case import ANY, Phase, faults_at_every_boundary, thaw_after_the_retry
from tests.faults.delta_case import DeltaCase
from tests.support.network_faults import Late, LoseReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.lake import Lake
    from tests.support.processes import Child

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

COMMIT = Match(operations={"PutObject"}, key_class="delta_log/commit")
DATA = Match(operations={"PutObject"}, key_class="data")


@pytest.fixture
def case(spark: SparkSession, s3: EmbeddedS3, lake: Callable[[], Lake], run_key: str) -> DeltaCase:
    return DeltaCase(spark, s3, lake(), "append")


@pytest.mark.matrix
@pytest.mark.timeout(1800)  # each boundary is a process, a recovery and a retry
@pytest.mark.parametrize("phase", ["before", "torn", "after", "late", "lost"])
def test_a_fault_at_every_boundary_of_a_merge_with_deletion_vectors(
    spark: SparkSession,
    s3: EmbeddedS3,
    lake: Callable[[], Lake],
    victims: Victims,
    phase: Phase,
    monkeypatch: pytest.MonkeyPatch,
    run_key: str,
    *,
    record_property: Callable[[str, object], None],
) -> None:
    """The campaign's live tier hits the other statements."""
    name = "merge-with-deletion-vectors"
    hit = faults_at_every_boundary(s3, victims, phase, lambda: DeltaCase(spark, s3, lake(), name), run_key, monkeypatch)
    record_property("faults", hit)
    assert hit >= 5  # marker, document, data file, commit, verdict at the least


@pytest.mark.parametrize(
    ("boundary", "phase"),
    [
        pytest.param(ANY, "after", id="after the marker"),
        pytest.param(DATA, "before", id="before the data", marks=pytest.mark.matrix),
        pytest.param(DATA, "after", id="after the data", marks=pytest.mark.matrix),
        pytest.param(COMMIT, "before", id="before the commit", marks=pytest.mark.matrix),
        pytest.param(COMMIT, "torn", id="in the commit"),
        pytest.param(COMMIT, "after", id="after it"),
    ],
)
def test_a_kill_at_the_boundaries_that_matter_most(
    case: DeltaCase, victim: Child, boundary: Match, phase: Literal["before", "torn", "after"], run_key: str
) -> None:
    """The first request, the data file, the commit. The short selection: after the marker, in and after the commit."""
    rule = case.s3.wire.add(Rule(boundary, Kill(phase, victim.kill)))
    victim.tell(case.order(run_key))
    victim.end()
    assert rule.hits == 1, victim.said()
    case.recover()
    case.retry()


def test_a_killed_creation_can_be_written_again(
    spark: SparkSession, s3: EmbeddedS3, lake: Callable[[], Lake], victim: Child, run_key: str
) -> None:
    """The creating commit lands late, after recovery: its slot holds an empty table of the same shape."""
    case = DeltaCase(spark, s3, lake(), "create")
    late = Late(end=victim.kill)
    rule = s3.wire.add(Rule(COMMIT, late))
    victim.tell(case.order(run_key))
    victim.end()
    assert rule.hits == 1, victim.said()
    case.recover()
    assert [reply.status for reply in late.release()] == [412]
    case.check()
    case.retry()
    assert case.written() == ["SAFEWRITER FENCE", "WRITE"]


def test_a_commit_that_lands_after_recovery_changes_nothing(case: DeltaCase, victim: Child, run_key: str) -> None:
    """The fence has its slot, and the dead writer cannot try another."""
    late = Late(end=victim.kill)
    rule = case.s3.wire.add(Rule(COMMIT, late))
    victim.tell(case.order(run_key))
    victim.end()
    assert rule.hits == 1, victim.said()
    case.recover()
    assert case.lake.document().status == "rolled_back"
    assert [reply.status for reply in late.release()] == [412]
    case.check()
    case.retry()
    assert case.written() == ["SAFEWRITER FENCE", "WRITE"]


@pytest.mark.parametrize("held", [pytest.param(DATA, marks=pytest.mark.matrix), COMMIT], ids=["data", "commit"])
def test_a_frozen_writer_that_thaws_after_the_retry_changes_nothing(
    case: DeltaCase, victim: Child, held: Match, run_key: str
) -> None:
    """SIGSTOP before the request, recovery and retry elsewhere, SIGCONT: the writer notices that it lost the write."""
    thaw_after_the_retry(case, victim, held, 1, run_key)
    assert case.lake.orphans() == set(), "the thawed writer has tidied up after itself"


@pytest.mark.parametrize(
    "status", [503, pytest.param(500, marks=pytest.mark.matrix), None], ids=["503", "500", "dropped"]
)
def test_a_lost_reply_of_the_commit_makes_one_version(case: DeltaCase, status: int | None) -> None:
    """The client's retry finds its own object and recognises it, so it commits only once."""
    case.s3.wire.add(Rule(COMMIT, LoseReply(status)))
    with SafeWriter(case.spark, case.lake.table) as block:
        case.statement.run(case.spark, block.table)
        block.success()
    case.s3.wire.clear_rules()
    assert case.written() == ["WRITE"]
    case.check()
