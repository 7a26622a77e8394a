"""Two processes on one table: every acknowledged commit is there, which Delta's default store does not guarantee, also
when one of the two is killed again and again.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from safewriter import SafeWriter
from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.record.document import Status
from safewriter.settle.one_write import Action
from safewriter.settle.recovery import Recovery
from safewriter.settle.sweeper import Sweeper
from soal.testing.s3.rules import Delay, Match, Rule
from tests.faults.statements import STATEMENTS
from tests.faults.victims import DEADLINE_MS
from tests.lab.bench.fanout import Writers
from tests.support.lake import CHECKPOINTS
from tests.support.network_faults import Freeze
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.victims import Victims
    from tests.support.ice import Catalog
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDS = 10
KILLS = 200
KILLS_PER_DAY = 20
NEXT_DAY_S = 25 * 3600
"""After a day no attempt claims any more, so a sweep deletes all that dead ones have left."""
SEED = 20261121
ADDED = range(2, 9)
"""The rows that one append of the victim adds."""
DEFAULT = {f"spark.delta.logStore.{scheme}.impl": "io.delta.storage.S3SingleDriverLogStore" for scheme in ("s3", "s3a")}
"""Delta's own log store for S3."""


def append_by_two(
    s3: EmbeddedS3,
    folder: Path,
    table: str,
    rounds: int,
    way: str,
    lake_format: str,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Let two processes append `rounds` times each, side by side, every PUT delayed."""
    variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with Writers(2, settings, folder, lake_format, variables=variables) as writers:
        for number in range(2):  # the first append creates the table, so that all later ones are plain appends
            writers.append_alone(way, table, number)
        s3.wire.add(Rule(Match(operations={"PutObject"}), Delay(100), times=None))
        for _ in range(1, rounds):
            assert writers.append(way, table) == []
    s3.wire.clear_rules()


@pytest.mark.parametrize("rounds", [3, pytest.param(ROUNDS, marks=pytest.mark.matrix)])
def test_no_commit_of_two_guarded_writers_is_lost(
    s3: EmbeddedS3, lake: Callable[[], Lake], rounds: int, tmp_path: Path
) -> None:
    """The table has as many rows, versions and true verdicts as appends."""
    table = lake()
    append_by_two(s3, tmp_path, table.table, rounds, "guarded", "delta")
    assert table.rows() == 2 * rounds
    assert table.operations() == ["WRITE"] * 2 * rounds
    assert {document.status for document in table.documents()} == {"committed"}
    table.check()


@pytest.mark.matrix
def test_deltas_default_store_loses_commits_in_the_same_test(
    s3: EmbeddedS3, lake: Callable[[], Lake], tmp_path: Path
) -> None:
    """The control: without the conditional store both writers report success, and rows are missing."""
    table = lake()
    append_by_two(s3, tmp_path, table.table, ROUNDS, "plain", "delta", DEFAULT)
    assert table.rows() < 2 * ROUNDS


@pytest.mark.matrix
@pytest.mark.usefixtures("run_key")
@pytest.mark.parametrize("kind", ["rest", pytest.param("glue", marks=pytest.mark.aws)])
def test_no_commit_of_two_guarded_writers_to_an_iceberg_table_is_lost(
    spark: SparkSession, s3: EmbeddedS3, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """An append whose main has moved is applied again, and each is in main's history once. The emulator, not moto,
    makes Glue refuse an outdated version.
    """
    catalog: Catalog = request.getfixturevalue(kind)
    table = catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {table.name} (id LONG) USING iceberg")
    append_by_two(s3, tmp_path, table.name, ROUNDS, "guarded", "iceberg", catalog.settings())
    assert table.rows() == 2 * ROUNDS
    assert len(table.history()) == 1 + 2 * ROUNDS, "an empty snapshot, to which a fence could hold, and each append"
    assert [document.status for document in table.documents()] == ["committed"] * 2 * ROUNDS
    assert table.refs() == {"main"}
    table.check()


@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_the_survivor_keeps_every_commit_while_the_other_is_killed(
    spark: SparkSession,
    s3: EmbeddedS3,
    lake: Callable[[], Lake],
    victims: Victims,
    run_key: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Two hundred kills at random moments, each beside an append of the survivor's; after each the sweeper runs."""
    chance = random.Random(SEED)  # noqa: S311 - the same kills for everybody
    table, batch = lake(), STATEMENTS["append"]
    spark.range(-1, 0, 1, 1).write.format("delta").save(table.table)
    recovery = Recovery(table.checkpoints, table_store, clock=epoch_ms)
    sweeper = Sweeper(table.checkpoints, recovery, epoch_ms, may_go_on=lambda: True)
    killed = landed = 0
    for number in range(KILLS):
        s3.wire.clock_ahead_s = 0
        with victims.take() as victim, ThreadPoolExecutor(1) as pool:
            kill = s3.wire.add(Rule(Match(is_mutating=True), Freeze(victim.kill), nth=chance.randint(1, 16)))
            victim.tell(f"{table.table} {run_key}-{number} append {chance.choice(['write', 'success'])}")
            survivor = pool.submit(append_one, spark, table, f"{number}")
            killed += victim.end() != 0
            survivor.result()
            s3.wire.clear_rules()
            # Pending requests have arrived before the clock passes the grace.
            assert not kill.hits or kill.fired(timeout_s=BUSY_S)
        s3.wire.clock_ahead_s = 2 * DEADLINE_MS / 1000
        looks = sweeper.sweep()
        assert looks.count(Action.FAILED, Action.UNREADABLE, Action.LEFT) == 0, (kill.hits, looks)
        if number % KILLS_PER_DAY == KILLS_PER_DAY - 1:
            s3.wire.clock_ahead_s = NEXT_DAY_S
            # A sweep gives each write a share of its time, and leaves the rest of a clean-up to the next one.
            next_day = sweeper.sweep(), sweeper.sweep()
            assert not list(table.checkpoints.marked()), next_day
        table.check()
        statuses = [document.status for document in table.documents()]
        landed = statuses.count(Status.COMMITTED) - (number + 1)
        assert set(statuses) <= {Status.COMMITTED, Status.ROLLED_BACK}
        assert table.rows() == 1 + (number + 1) + landed * len(ADDED)
        assert table.orphans() == set()
    record_property("faults", killed)
    assert killed > KILLS // 4
    expected = [-1, *range(1000, 1000 + KILLS), *(id_ for id_ in ADDED for _ in range(landed))]
    assert batch.ids(spark, table.table) == tuple(sorted(expected))


def append_one(spark: SparkSession, table: Lake, step: str) -> None:
    with SafeWriter(spark, table.table, step=step) as block:
        spark.range(1000 + int(step), 1001 + int(step), 1, 1).write.format("delta").mode("append").save(block.table)
        block.success()
