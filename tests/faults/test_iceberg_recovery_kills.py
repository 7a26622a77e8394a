"""Recovery of an Iceberg write that is hit itself: at every request to S3 and to the catalog, in every way, and then
done again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest

from scripts.emulator.rules import Kill, Match, Rule
from tests.faults.dead import Dead, Settlers, faults_at_every_request
from tests.faults.iceberg_case import AFTER, BASE, IcebergCase
from tests.faults.iceberg_victim import STATEMENTS
from tests.faults.victims import DEADLINE_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(900)]

DATA = Match(operations={"PutObject"}, key=r"/data/.*\.parquet")
DOCUMENT = Match(operations={"PutObject"}, key_class="checkpoint")
PLACES: dict[str, tuple[Match, int, Literal["before", "after"]]] = {
    "not staged": (DATA, 1, "after"),
    "staged": (DOCUMENT, 2, "before"),
    "picked": (DOCUMENT, 2, "after"),
    "published": (DOCUMENT, 3, "before"),
}
"""Where an attempt is killed. The document is written when it is claimed, when it is picked, when it is committed."""
FOREIGN = (20, 21)
"""What somebody else has appended since to a main that has moved."""


@dataclass(frozen=True)
class Death:
    """How an attempt died, and whether its write is to be in main in the end."""

    name: str
    commit_point: str
    place: str
    lands: bool
    has_moved: bool = False

    def __str__(self) -> str:
        return f"{self.name}, {self.commit_point}, {self.place}{', main has moved' * self.has_moved}"

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted((*(AFTER[self.name] if self.lands else BASE), *(FOREIGN * self.has_moved))))


DEATHS = [
    *(Death(name, "write", "staged", lands=True) for name in STATEMENTS),
    *(Death(name, "success", "staged", lands=False) for name in STATEMENTS),
    *(Death(name, point, "not staged", lands=False) for name in STATEMENTS for point in ("write", "success")),
    Death("append", "success", "picked", lands=True),
    Death("append", "success", "published", lands=True),
    Death("append", "write", "staged", lands=True, has_moved=True),  # applied again
    Death("merge", "write", "staged", lands=False, has_moved=True),  # a conflict
]


@pytest.fixture(scope="module")
def settlers(s3: EmbeddedS3) -> Iterator[Settlers]:
    found = Settlers(s3, "iceberg")
    yield found
    found.close()


def die(case: IcebergCase, victims: Victims, death: Death, run_key: str) -> None:
    boundary, nth, phase = PLACES[death.place]
    with victims.take() as victim:
        rule = case.s3.wire.add(Rule(boundary, Kill(phase, victim.kill), nth=nth))
        victim.tell(case.order(run_key, death.commit_point))
        victim.end()
        case.s3.wire.clear_rules()
    assert rule.hits == 1, victim.said()
    if death.has_moved:
        case.spark.range(FOREIGN[0], FOREIGN[-1] + 1, 1, 1).writeTo(case.ice.name).append()


@pytest.mark.parametrize("death", DEATHS, ids=str)
def test_a_fault_at_every_request_of_a_recovery(
    spark: SparkSession,
    s3: EmbeddedS3,
    catalog: Catalog,
    iceberg_victims: Victims,
    settlers: Settlers,
    run_key: str,
    death: Death,
) -> None:
    """Whoever comes next brings it to the same end: it is in main once or not at all, and nothing of it is left."""
    case = IcebergCase(spark, s3, catalog, death.name)
    die(case, iceberg_victims, death, run_key)
    s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000

    def judge(what: str) -> None:
        case.sweep()  # which takes away the marker of what is clean
        case.ice.check()
        document = case.ice.document()
        assert document.status == ("committed" if death.lands else "rolled_back"), (what, document.reason)
        assert all(attempt.cleaned for attempt in document.attempts), what
        assert case.ice.markers(document) == (), what
        assert case.ids() == death.ids, what
        assert len(case.ice.history()) == 1 + death.has_moved + death.lands, what
        assert case.ice.refs() == {"main"}, what
        # What a dead settler has sent lands here when nothing is looked for any more; no commit can come of it.
        left = {path for path in case.ice.orphans() if "/data/" in path or not what.startswith("late")}
        assert left == set(), what

    faults_at_every_request(Dead(s3, case.ice, settlers, catalog.database), judge)
