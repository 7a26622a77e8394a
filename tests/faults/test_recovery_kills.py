"""Recovery that is hit itself: at every one of its mutating requests, in every way, and then done again.

The dead attempt is made once, by a real kill, and put back for each try; who settles needs no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from safewriter.state import OPEN
from scripts.emulator.rules import Kill, Late, LoseReply, Match, Rule
from tests.faults.statements import STATEMENTS
from tests.faults.victims import DEADLINE_MS
from tests.support.lake import CHECKPOINTS, LAKE
from tests.support.processes import Child

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(900)]

Phase = Literal["before", "after", "late", "lost"]
PHASES: tuple[Phase, ...] = ("before", "after", "late", "lost")
BOUNDARIES_MAX = 30
ANY = Match(is_mutating=True)
COMMIT = Match(operations={"PutObject"}, key_class="delta_log/commit")


class Dead:
    """A dead attempt with all that is on S3 beside it, to be put back as often as needed."""

    def __init__(self, s3: EmbeddedS3, write_key: str) -> None:
        self._s3, self._client, self._write_key = s3, s3.observer(), write_key
        self._objects = {(bucket, key): self._body(bucket, key) for bucket, key in self._keys()}

    def _keys(self) -> list[tuple[str, str]]:
        return [(bucket, key) for bucket in (LAKE, CHECKPOINTS) for key in self._s3.keys(bucket)]

    def _body(self, bucket: str, key: str) -> bytes:
        return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def put_back(self) -> None:
        for bucket, key in self._keys():
            if (bucket, key) not in self._objects:
                self._client.delete_object(Bucket=bucket, Key=key)
        for (bucket, key), body in self._objects.items():
            self._client.put_object(Bucket=bucket, Key=key, Body=body)

    def settle(self) -> None:
        """Settle it, unhurt."""
        with self._settler() as settler:
            settler.tell(self._write_key)
            settler.expect("settled")

    def settle_and_be_hit(self, phase: Phase, boundary: int) -> Late | None:
        """Settle it, hit at a mutating request; return what is still on its way, or None if there was no such one."""
        with self._settler() as settler:
            late = Late(end=settler.kill)
            action: Late | LoseReply | Kill = late
            if phase == "lost":
                action = LoseReply(503)
            elif phase != "late":
                action = Kill(phase, settler.kill)
            rule = self._s3.wire.add(Rule(ANY, action, nth=boundary))
            settler.tell(self._write_key)
            settler.end()
            self._s3.wire.clear_rules()
        return late if rule.hits else None

    def _settler(self) -> Child:
        settler = Child(
            "tests.faults.settler", environment={**self._s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        )
        settler.expect("ready")
        return settler


@pytest.mark.parametrize("landed", [True, False], ids=["landed", "not landed"])
@pytest.mark.parametrize("commit_point", ["write", "success"])
@pytest.mark.parametrize("name", ["append", "create", "merge", "merge-with-deletion-vectors"])
def test_a_fault_at_every_request_of_a_recovery(
    spark: SparkSession,
    s3: EmbeddedS3,
    lake: Callable[[], Lake],
    victims: Victims,
    run_key: str,
    name: str,
    commit_point: str,
    *,
    landed: bool,
) -> None:
    """Whoever comes next brings it to the same end, and what lands late changes nothing."""
    statement, table = STATEMENTS[name], lake()
    s3.wire.clock_ahead_s = 0
    statement.prepare(spark, table.table)
    with victims.take() as victim:
        rule = s3.wire.add(Rule(COMMIT, Kill("after" if landed else "before", victim.kill)))
        victim.tell(f"{table.table} {run_key} {name} {commit_point}")
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
    dead = Dead(s3, table.document().write_key)
    verdict = "committed" if landed and commit_point == "write" else "rolled_back"

    for phase in PHASES:
        boundary = 1
        while boundary < BOUNDARIES_MAX:
            dead.put_back()
            late = dead.settle_and_be_hit(phase, boundary)
            if late is None:
                break
            dead.settle()
            late.release()
            dead.settle()
            table.check()
            document = table.document()
            assert document.status not in OPEN
            assert document.status == verdict, (phase, boundary)
            if table.version() >= 0:
                expected = statement.after if verdict == "committed" else statement.before
                assert statement.ids(spark, table.table) == expected, (phase, boundary)
            assert table.orphans() == set(), (phase, boundary)
            boundary += 1
        assert boundary > 3, phase  # the verdict, the mark of the clean-up, the marker at the least
