"""Random histories on real Spark: whatever happens, the files are those that are needed, and the rows those of a serial
history of the neighbours' statements and of the writes that are committed.

Each history takes seconds, so failures are not shrunk; the seed reproduces a history, and a failure names its steps.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.property.history import History
from tests.property.neighbours import Deltalake
from tests.support.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.usefixtures("of_one_run")]

STEPS = 30
SEEDS = range(1, 201)
SHORT = {7: 10}
"""Seeds that run with each change, and their numbers of steps; `scripts/histories` runs the others, too."""


@pytest.fixture(scope="module")
def deltalake(s3: EmbeddedS3) -> Iterator[Deltalake]:
    with Deltalake.started(s3.endpoint) as library:
        yield library


@pytest.fixture
def history(spark: SparkSession, s3: EmbeddedS3, deltalake: Deltalake) -> Callable[[int], History]:
    def new(seed: int) -> History:
        lake = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
        return History(seed, spark, s3, lake, deltalake)

    return new


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, id=f"seed-{seed}", marks=() if seed in SHORT else pytest.mark.matrix) for seed in SEEDS],
)
def test_a_history(history: Callable[[int], History], seed: int) -> None:
    """Writers, deaths, late commits, retries, recoveries and neighbours, in an order that the seed draws."""
    history(seed).play(SHORT.get(seed, STEPS))
