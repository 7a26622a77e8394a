"""What a block changes in its session, and restores."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import safewriter
from safewriter import SafeWriter
from tests.integration.safewriter.appending import append, batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_the_users_own_transaction_options_are_kept_beside_ours(spark: SparkSession, lake: Lake) -> None:
    """Delta records the user's transaction; the guard finds its own in the same commit."""
    own = batch(spark).write.format("delta").mode("append").option("txnAppId", "mine").option("txnVersion", "7")
    with SafeWriter(spark, lake.table) as block:
        own.save(block.table)
        block.success()
    transactions = {action["txn"]["appId"]: action["txn"]["version"] for action in lake.commits()[0] if "txn" in action}
    assert transactions == {"mine": 7, lake.document().write_key: 1}
    assert lake.document().status == "committed"


def test_one_block_may_be_open_on_a_session(spark: SparkSession, lake: Lake) -> None:
    """The second is refused before it does anything; the first continues."""
    with SafeWriter(spark, lake.table) as block:
        with pytest.raises(safewriter.BlockOpenError, match="newSession"):
            SafeWriter(spark, f"{lake.table}-other").__enter__()
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
    assert lake.rows() == 10


def test_an_interrupt_at_the_very_end_of_a_block_leaves_the_session_free(spark: SparkSession, lake: Lake) -> None:
    """In a notebook the next block uses the same session."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), SafeWriter(spark, lake.table) as block:
        block._block.session.on_restore(interrupted)  # type: ignore[attr-defined]
    append(spark, lake)
    assert lake.rows() == 10


def test_a_block_that_ends_on_another_thread_leaves_the_jobs_of_its_own_alone(spark: SparkSession, lake: Lake) -> None:
    """A generator may be closed there; the opening thread must not stay in the block's group, which is cancelled."""

    def write() -> Iterator[None]:
        with SafeWriter(spark, lake.table) as block:
            batch(spark).write.format("delta").mode("append").save(block.table)
            yield
            block.success()

    writing = write()
    next(writing)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(writing.close).result()  # type: ignore[attr-defined]
    assert lake.document().status == "rolled_back"
    assert spark.range(3).count() == 3
    append(spark, lake)
    assert lake.rows() == 10


def test_the_session_is_put_back_as_it_was(spark: SparkSession, lake: Lake) -> None:
    """After success and after an error; the user's own metadata is kept within the guard's."""
    key, txn = "spark.databricks.delta.commitInfo.userMetadata", "spark.databricks.delta.write.txnAppId"
    spark.conf.set(key, "nightly load")
    try:
        append(spark, lake)
        with pytest.raises(RuntimeError), SafeWriter(spark, lake.table, step="fails"):
            raise RuntimeError
        assert spark.conf.get(key) == "nightly load"
        assert spark.conf.get(txn, None) is None
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None
        batch(spark).write.format("delta").mode("append").save(lake.table)
    finally:
        spark.conf.unset(key)
    (info,) = [action["commitInfo"] for action in lake.commits()[0] if "commitInfo" in action]
    assert json.loads(info["userMetadata"])["user"] == "nightly load"
    (unguarded,) = [action["commitInfo"] for action in lake.commits()[1] if "commitInfo" in action]
    assert unguarded["userMetadata"] == "nightly load"
    assert not any("txn" in action for action in lake.commits()[1])
