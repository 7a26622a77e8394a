"""Random histories on real Spark: whatever happens, the files are those that are needed, and the rows those of a model.

Each history takes seconds, so nobody searches for a smaller one; it is told by its seed, and a failure names its steps.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.property.history import History
from tests.support.lake import CHECKPOINTS, Lake

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SHORT_SEED = 7738
SHORT_STEPS = 12
STEPS = 30


@pytest.fixture
def history(spark: SparkSession, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], History]:
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", CHECKPOINTS)
    monkeypatch.setenv("SOAL_RUN_KEY", f"history-{uuid.uuid4().hex}")
    return lambda seed: History(seed, spark, s3, Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}"))


@pytest.mark.matrix
def test_a_short_history(history: Callable[[int], History]) -> None:
    """One with an undo, VACUUM, a death after a commit and one before it, OPTIMIZE, a recovery and a retry."""
    history(SHORT_SEED).play(SHORT_STEPS)


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(1, 61), ids="seed-{}".format)
def test_a_long_history(history: Callable[[int], History], seed: int) -> None:
    """Writers, deaths, late commits, retries, recoveries, OPTIMIZE and VACUUM, in an order that the seed draws."""
    history(seed).play(STEPS)
