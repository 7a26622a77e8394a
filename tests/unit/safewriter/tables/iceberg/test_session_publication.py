"""The end of an Iceberg block's session: what it publishes, and what an error on the way means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from safewriter.errors import ConflictError, NotCommittedError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.tables.iceberg.staging import REFRESHED, JavaError, PySparkError, opened

if TYPE_CHECKING:
    from safewriter.tables.iceberg.session import IcebergSession


@pytest.mark.parametrize("journal", [("journal", "nonce"), None])
def test_a_block_is_published_once(session: IcebergSession, done: list[str], journal: tuple[str, str] | None) -> None:
    """The journal has its line first, and the session shows the publication afterwards."""
    opened(session, done).mark = "7 10 70 99"
    session._journal = journal
    assert (session.report().passed, session.report().answered) == (False, True)
    session.publish()
    session.publish()
    assert done == [*(["commit_passed in journal by nonce"] if journal else []), "published", REFRESHED]
    assert (session.report().passed, session.report().answered, session.report().mark) == (True, True, "7 10 70 99")


def test_a_session_that_shows_the_publication_is_not_made_to_read_anew(
    session: IcebergSession, done: list[str]
) -> None:
    """It reads the table through the object that has published."""
    opened(session, done).shown = True
    session.publish()
    assert done == ["published"]


def test_a_block_without_a_statement_publishes_nothing(session: IcebergSession, done: list[str]) -> None:
    """The session then reports that no commit was sent, so no fence is needed."""
    opened(session, done).staged = False
    session._journal = ("journal", "nonce")
    session.publish()
    assert done == [REFRESHED]
    assert session.report().passed is False


@pytest.mark.parametrize("thrown", [JavaError, PySparkError])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("CommitFailedException", ConflictError),
        ("ValidationException", ConflictError),
        ("IllegalStateException", ConflictError),
        ("IllegalArgumentException", ConflictError),
        ("UnsupportedOperationException", NotCommittedError),
        ("NoSuchTableException", StoreError),
        ("NotFoundException", StoreError),
        ("CommitStateUnknownException", StoreError),
        ("RuntimeException", StoreError),
    ],
)
def test_a_refused_publication_is_told_from_one_of_which_nobody_knows(
    session: IcebergSession, done: list[str], thrown: Any, kind: str, expected: type[Exception]
) -> None:
    """Only the table shows whether the unknown one has arrived; the refused one is no longer in flight."""
    opened(session, done).error = thrown(kind)
    with pytest.raises(expected, match="said by Java") as raised:
        session.publish()
    assert type(raised.value) is expected
    assert done == ["published", REFRESHED]
    assert (session.report().passed, session.report().answered) == (True, expected is ConflictError)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("NoSuchTableException", ConflictError),
        ("NotFoundException", ConflictError),
        ("UnsupportedOperationException", NotCommittedError),
        ("RuntimeException", StoreError),
    ],
)
def test_an_error_before_the_publication_is_sent_leaves_nothing_open(
    session: IcebergSession, done: list[str], kind: str, expected: type[Exception]
) -> None:
    """A table that is gone cannot hold it."""
    opened(session, done).stray = JavaError(kind)
    with pytest.raises(expected, match="said by Java"):
        session.publish()
    assert done == [REFRESHED]
    assert session.report().passed is False


def test_a_block_whose_statement_went_past_it_publishes_nothing(session: IcebergSession, done: list[str]) -> None:
    """The JVM reports the stray statement when it is shut, and the settler gets it."""
    opened(session, done).strays = "snapshot 9"
    session.shut("success() was called")
    with pytest.raises(NotCommittedError, match=r"snapshot 9\. Its rows stay"):
        session.publish()
    assert done == ["shut"]
    assert (session.report().passed, session.report().answered) == (False, True)
    assert str(session.report().strays).startswith("snapshot 9. Its rows stay")


@pytest.mark.parametrize("error", [Py4JError("it is gone"), PySparkException("it is gone")])
def test_a_session_that_cannot_look_anew_changes_no_verdict(
    session: IcebergSession, done: list[str], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """The table may be gone by then."""

    def fail(_: str) -> None:
        raise error

    opened(session, done)
    spark: Any = session.spark
    spark.catalog.refreshTable = fail
    session.publish()
    assert done == ["published"]
    assert "lake.db.t: the session may show the table as it was before: it is gone" in caplog.text
