"""An Iceberg block's session before and beside its JVM; what talks to one is tested in tests/integration/safewriter."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from safewriter.tables.iceberg.session import IcebergSession


@pytest.fixture
def session() -> IcebergSession:
    """Only what needs no JVM can be asked of it."""
    made = object.__new__(IcebergSession)
    made._staging = None
    return made


def test_an_error_in_a_skipped_block_is_the_scripts_own(session: IcebergSession) -> None:
    """The block has a transaction that nobody publishes, so the guard makes no statement fail."""
    assert session.was_skipped(ValueError("theirs")) is False


def test_a_block_has_begun_once_its_transaction_is_open(session: IcebergSession) -> None:
    """Before that nobody can have used the block's table."""
    assert session.has_begun is False
    session._staging = SimpleNamespace()
    assert session.has_begun is True
