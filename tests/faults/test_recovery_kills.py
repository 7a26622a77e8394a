"""A recovery that is hit at every one of its mutating requests, in every way, and then repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.dead import Dead, Settlers, faults_at_every_request
from tests.faults.statements import STATEMENTS
from tests.faults.victims import DEADLINE_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(900)]

COMMIT = Match(operations={"PutObject"}, key_class="delta_log/commit")


@pytest.fixture(scope="module")
def settlers(s3: EmbeddedS3) -> Iterator[Settlers]:
    found = Settlers(s3, "delta")
    yield found
    found.close()


@pytest.mark.parametrize("landed", [True, False], ids=["landed", "not landed"])
@pytest.mark.parametrize(
    ("name", "commit_point"),
    [
        *((name, "write") for name in ("append", "create", "merge", "merge-with-deletion-vectors")),
        *((name, "success") for name in ("append", "create")),  # the gate does not send what cannot be undone
    ],
)
def test_a_fault_at_every_request_of_a_recovery(
    spark: SparkSession,
    s3: EmbeddedS3,
    lake: Callable[[], Lake],
    victims: Victims,
    settlers: Settlers,
    run_key: str,
    name: str,
    commit_point: str,
    *,
    record_property: Callable[[str, object], None],
    landed: bool,
) -> None:
    """The next settler finishes the recovery in the same way, and late requests change nothing."""
    statement, table = STATEMENTS[name], lake()
    statement.prepare(spark, table.table)
    with victims.take() as victim:
        rule = s3.wire.add(Rule(COMMIT, Kill("after" if landed else "before", victim.kill)))
        victim.tell(f"{table.table} {run_key} {name} {commit_point}")
        victim.end()
        s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
    committed = landed and commit_point == "write"

    def judge(what: str) -> None:
        table.check()
        assert table.document().status == ("committed" if committed else "rolled_back"), what
        if table.version() >= 0:
            assert statement.ids(spark, table.table) == (statement.after if committed else statement.before), what
        assert table.orphans() == set(), what

    record_property("faults", faults_at_every_request(Dead(s3, table, settlers), judge))
