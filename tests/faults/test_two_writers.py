"""Two processes on one Delta table: every acknowledged commit is there, which Delta's default store cannot say."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from scripts.emulator.rules import Delay, Match, Rule
from tests.support.lake import CHECKPOINTS
from tests.support.processes import Child

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDS = 6


def appended(s3: EmbeddedS3, lake: Lake, mode: str) -> int:
    """Let two processes append `ROUNDS` times each, side by side, every PUT delayed; return the rows that are there."""
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with (
        Child("tests.faults.appender", mode, "a", environment={**environment, "SOAL_RUN_KEY": uuid.uuid4().hex}) as one,
        Child("tests.faults.appender", mode, "b", environment={**environment, "SOAL_RUN_KEY": uuid.uuid4().hex}) as two,
    ):
        for child in (one, two):
            child.expect("ready")
        one.tell(lake.table)  # creates the table, so that all that follows is appends
        one.expect("done 0")
        two.tell(lake.table)
        two.expect("done 0")
        s3.wire.add(Rule(Match(operations={"PutObject"}), Delay(100), times=None))
        for number in range(1, ROUNDS):
            for child in (one, two):
                child.tell(lake.table)
            for child in (one, two):
                child.expect(f"done {number}")
    s3.wire.clear_rules()
    return lake.rows()


def test_no_commit_of_two_guarded_writers_is_lost(s3: EmbeddedS3, lake: Callable[[], Lake]) -> None:
    """Twelve appends, twelve rows, twelve versions, twelve true verdicts."""
    table = lake()
    assert appended(s3, table, "guarded") == 2 * ROUNDS
    assert table.operations() == ["WRITE"] * 2 * ROUNDS
    assert {document.status for document in table.documents()} == {"committed"}
    table.check()


def test_deltas_default_store_loses_commits_in_the_same_test(s3: EmbeddedS3, lake: Callable[[], Lake]) -> None:
    """The control: without the conditional store both writers report success, and rows are missing."""
    assert appended(s3, lake(), "default") < 2 * ROUNDS
