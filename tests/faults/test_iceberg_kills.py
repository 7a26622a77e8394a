"""SIGKILL of everything at every mutating request, to S3 and to the catalog, of a guarded write to an Iceberg table,
recovery, retry.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from safewriter.writer import SafeWriter
from scripts.emulator.rules import Kill, Match, Rule
from tests.faults.case import Case, Phase, faults_at_every_boundary
from tests.faults.iceberg_victim import STATEMENTS
from tests.faults.victims import Victims

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

DATA = Match(operations={"PutObject"}, key=r"/data/.*\.parquet")
METADATA = Match(operations={"PutObject"}, key=r"\.metadata\.json")
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

    def order(self, run_key: str) -> str:
        return f"{self.ice.name} {run_key} {self.name} write"

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
        assert {path for path in self.ice.orphans() if "/data/" in path} == set()


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
