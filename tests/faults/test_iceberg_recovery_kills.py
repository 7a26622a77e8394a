"""A recovery of an Iceberg write that is hit at every request to S3 and to the catalog, in every way, and then
repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from soal.testing.s3.rules import Kill, Rule
from tests.faults.dead import Dead, Settlers, faults_at_every_request
from tests.faults.iceberg_case import AFTER, BASE, TOLD, IcebergCase
from tests.faults.iceberg_victim import STATEMENTS
from tests.faults.victims import DEADLINE_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(900)]

FOREIGN = (20, 21)
"""Rows that another process has appended to main in the meantime."""


@dataclass(frozen=True)
class Death:
    """How an attempt died: before or after its publication; and whether another process has committed since."""

    name: str
    published: bool
    has_moved: bool = False

    def __str__(self) -> str:
        return f"{self.name}, {'' if self.published else 'not '}published{', main has moved' * self.has_moved}"

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted((*(AFTER[self.name] if self.published else BASE), *(FOREIGN * self.has_moved))))


DEATHS = [
    *(Death(name, published) for name in STATEMENTS for published in (False, True)),
    *(Death("append", published, has_moved=True) for published in (False, True)),
]


@pytest.fixture(scope="module")
def settlers(s3: EmbeddedS3, catalog: Catalog) -> Iterator[Settlers]:
    """Start the settlers behind the catalog, whose settings they inherit."""
    found = Settlers(s3, "iceberg")
    yield found
    found.close()


def die(case: IcebergCase, victims: Victims, death: Death, run_key: str) -> None:
    with victims.take() as victim:
        kill = Kill("before", victim.kill)
        rule = case.s3.wire.add(Rule(TOLD, kill, nth=2) if death.published else Rule(case.publication, kill))
        victim.tell(case.order(run_key))
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
    record_property: Callable[[str, object], None],
) -> None:
    """The next settler finishes the recovery in the same way: the write is in main once, or fenced off."""
    case = IcebergCase(spark, s3, catalog, death.name)
    die(case, iceberg_victims, death, run_key)
    s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000

    def judge(what: str) -> None:
        case.sweep()  # it deletes the marker of a clean write
        case.ice.check()
        document = case.ice.document()
        assert document.status == ("committed" if death.published else "rolled_back"), (what, document.reason)
        assert all(attempt.cleaned for attempt in document.attempts), what
        assert case.ice.markers(document) == (), what
        assert case.ids() == death.ids, what
        assert len(case.ice.history()) == 1 + death.has_moved + death.published, what
        assert case.ice.strays() == set(), what
        assert len(case.ice.refs()) == (1 if death.published else 2), "main, and the fence of what was not published"

    record_property("faults", faults_at_every_request(Dead(s3, case.ice, settlers, catalog.database), judge))
