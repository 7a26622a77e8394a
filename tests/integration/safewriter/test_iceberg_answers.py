"""A publication whose answer is lost, that is sent twice, or that competes with many others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter import NotCommittedError, SafeWriter
from soal.testing.s3 import Match, Refuse, Rule
from tests.integration.safewriter.ice_rows import append, foreign, ids, session_of
from tests.support.network_faults import Freeze, LoseReply

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Reply, Request
    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark]


def test_a_publication_whose_answer_is_lost_is_read_back(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has arrived, so the block is committed."""
    _lose_the_answer(monkeypatch, before=False)
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == list(range(8))
    ice.check()


def test_a_publication_that_never_arrives_is_fenced_off(
    spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it can never arrive, and the retry writes the batch once."""
    with monkeypatch.context() as patched:
        _lose_the_answer(patched, before=True)
        with (
            pytest.raises(NotCommittedError, match="cannot any more"),
            SafeWriter(spark, ice.name, format="iceberg") as block,
        ):
            append(spark, block.table, 5, 8)
            block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == list(range(8))
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_commit_that_its_client_sends_twice_lands_once(spark: SparkSession, s3: EmbeddedS3, ice: Ice) -> None:
    """The second copy is refused: Iceberg would otherwise set main back to the block's snapshot, before commits that
    others have made since.
    """

    def twice(request: Request) -> Reply:
        request.apply()
        foreign(spark, ice, 20, 22)
        return request.apply()

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        rule = s3.wire.add(Rule(Match(operations={"CatalogChange"}), twice))
        block.success()
    assert rule.hits == 1
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6, 7, 20, 21]
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
@pytest.mark.parametrize(("answer", "next_answer"), [(409, 403), (409, 404), (403, None), (404, None), (400, None)])
def test_no_manifest_of_a_publication_is_deleted_after_a_lost_answer(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice, answer: int, next_answer: int | None
) -> None:
    """After an error that Iceberg treats as a refusal its client deletes its files, although the commit has landed and
    a catalog that denies the next read cannot show it.
    """

    def lost(request: Request) -> Reply:
        reply = LoseReply(answer)(request)
        if next_answer is not None:
            s3.wire.add(Rule(Match(operations={"CatalogRead"}), Refuse(next_answer)))
        return reply

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        s3.wire.add(Rule(Match(operations={"CatalogChange"}), lost))
        block.success()
    assert ice.document().status == "committed"
    ice.check()
    assert ids(session_of(spark, ice), ice.name) == list(range(8))


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_publication_is_tried_more_often_than_iceberg_does_by_itself(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice
) -> None:
    """Iceberg's four retries are too few beside seven other writers."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        rule = s3.wire.add(Rule(Match(operations={"CatalogChange"}), Refuse(409), times=5))
        block.success()
    assert rule.hits == 5
    assert ids(spark, ice.name) == list(range(8))


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_a_publication_sets_no_property_of_others_back(spark: SparkSession, s3: EmbeddedS3, ice: Ice) -> None:
    """Also those in which the block keeps its own number of retries: a server gets changes, not whole tables."""
    name = "commit.retry.num-retries"

    def change() -> None:
        session_of(spark, ice).sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('{name}' = '50')")

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        s3.wire.add(Rule(Match(operations={"CatalogChange"}), Freeze(change)))
        block.success()
    assert ice.load().properties[name] == "50"
    assert ids(spark, ice.name) == list(range(8))


def _lose_the_answer(monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
    """Break the connection before the publication is sent, or after its commit."""
    from safewriter.objects.store import StoreError
    from safewriter.tables.iceberg.session import IcebergSession

    publish = IcebergSession.publish

    def broken(session: Any) -> None:
        if session._sent:
            return
        if before:
            session._sent = True
        else:
            publish(session)
        raise StoreError("the connection was reset")

    monkeypatch.setattr(IcebergSession, "publish", broken)
