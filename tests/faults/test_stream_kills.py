"""SIGKILL of a stream at each request for its checkpoint on S3: after a restart it takes each batch once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pytest

from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.streams import STREAMS, rows_of
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

FIRST, SECOND = range(4), range(4, 11)
Phase = Literal["before", "after"]


class Case:
    """A stream on a table of its own."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, lake: Lake, name: str) -> None:
        self.spark, self.s3, self.lake, self.name = spark, s3, lake, name
        self._feed(FIRST)

    def _feed(self, ids: range) -> None:
        frame = self.spark.range(ids.start, ids.stop, 1, 1)
        frame.write.format("delta").mode("append").save(f"{self.lake.table}-source")

    def is_hit(self, victims: Victims, run_key: str, nth: int, phase: Phase, match: Match | None = None) -> bool:
        """Kill the stream at one of its requests; return whether there was such a request."""
        of_checkpoint = Match(key=f"{self.lake.name}-checkpoint/", is_mutating=True)
        with victims.take() as victim:
            rule = self.s3.wire.add(Rule(match or of_checkpoint, Kill(phase, victim.kill), nth=nth))
            victim.tell(f"{self.lake.table} {run_key} {self.name} write")
            victim.end()
            self.s3.wire.clear_rules()
        assert until(lambda: self.s3.wire.is_quiet)
        assert rule.hits == 1 or "acknowledged" in victim.lines, victim.said()
        return rule.hits == 1

    def go_on(self) -> None:
        """Restart the stream with more rows before it, and check the table."""
        self._feed(SECOND)
        STREAMS[self.name](self.spark, self.lake.table)
        found = self.spark.read.format("delta").load(self.lake.table).collect()
        assert sorted(tuple(row) for row in found) == rows_of(self.name, (*FIRST, *SECOND))
        assert {document.status for document in self.lake.documents()} == {"committed"}


@pytest.mark.parametrize(
    ("name", "phase"),
    [pytest.param(name, phase, marks=pytest.mark.matrix) for name in STREAMS for phase in get_args(Phase)],
)
def test_a_stream_that_is_killed_at_any_request_takes_each_batch_once(
    spark: SparkSession,
    s3: EmbeddedS3,
    lake: Callable[[], Lake],
    victims: Victims,
    run_key: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    phase: Phase,
    *,
    record_property: Callable[[str, object], None],
) -> None:
    """One request after the other is hit, until a stream has no more."""
    hits = 0
    while True:
        case = Case(spark, s3, lake(), name)
        key = f"{run_key}-{hits}"
        monkeypatch.setenv("SOAL_RUN_KEY", key)
        was_hit = case.is_hit(victims, key, hits + 1, phase)
        case.go_on()
        if not was_hit:
            break
        hits += 1
    record_property("faults", hits)
    assert hits >= 3, "metadata, offsets and commits at the least"


@pytest.mark.matrix
def test_a_stream_with_state_that_is_killed_before_it_notes_its_batch_counts_it_once(
    spark: SparkSession, s3: EmbeddedS3, lake: Callable[[], Lake], victims: Victims, run_key: str
) -> None:
    """The batch is in the table: the restarted stream delivers it again, and the guard skips it."""
    case = Case(spark, s3, lake(), "counts")
    noting = Match(key=f"{case.lake.name}-checkpoint/commits/.", is_mutating=True)
    assert case.is_hit(victims, run_key, 1, "before", noting)
    assert case.lake.rows() == 3
    case.go_on()
    assert case.lake.operations() == ["WRITE", "WRITE"]
