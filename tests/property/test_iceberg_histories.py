"""Random histories of Iceberg tables on real Spark: whatever happens, the rows are those of a serial history of the
neighbours' actions and of the writes that are committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.property.iceberg_history import IcebergHistory

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.usefixtures("of_one_run")]

STEPS = 30
SEEDS = range(1, 201)
SHORT = {7: 10}
"""Seeds that run with each change, and their numbers of steps; `scripts/histories` runs the others, too."""


@pytest.fixture
def history(spark: SparkSession, s3: EmbeddedS3, request: pytest.FixtureRequest) -> Callable[[int], IcebergHistory]:
    def new(seed: int) -> IcebergHistory:
        # Only a server's publication can be late: the other one happens between two requests.
        catalog: Catalog = request.getfixturevalue("lite" if seed % 3 == 0 else "rest")
        return IcebergHistory(seed, spark, s3, catalog.table(s3.observer()))

    return new


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, id=f"seed-{seed}", marks=() if seed in SHORT else pytest.mark.matrix) for seed in SEEDS],
)
def test_a_history(history: Callable[[int], IcebergHistory], seed: int) -> None:
    """Writers, deaths, late publications, retries, recoveries and neighbours, in an order that the seed draws."""
    history(seed).play(SHORT.get(seed, STEPS))
