"""An Iceberg block's session before and beside its JVM; what talks to one is tested in tests/integration/safewriter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.session import IcebergSession
from safewriter.tables.iceberg.table import DECIDED_MS

NOW_MS = 1_800_000_000_000


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


@pytest.mark.parametrize(
    ("latest_start_ms", "until_ms"),
    [(None, NOW_MS + DECIDED_MS), (NOW_MS + 1, NOW_MS + 1), (10**15, NOW_MS + DECIDED_MS)],
)
def test_no_block_publishes_once_its_fence_may_have_expired(
    session: IcebergSession, monkeypatch: pytest.MonkeyPatch, latest_start_ms: int | None, until_ms: int
) -> None:
    """However far away the deadline is, and also without one."""
    opened: list[Any] = []
    kept: dict[str, str] = {}

    def java_open(*arguments: Any) -> SimpleNamespace:
        opened.extend(arguments)
        return SimpleNamespace(shut=lambda: None)

    monkeypatch.setattr(IcebergSession, "_java", SimpleNamespace(open=java_open))
    monkeypatch.setattr(IcebergSession, "_identifier", "db.t")
    monkeypatch.setattr("safewriter.tables.iceberg.session.epoch_ms", lambda: NOW_MS)
    monkeypatch.setattr(session, "begin_group", lambda _: None)
    session._name = TableName.parse("lake.db.t")
    session._restore = []
    session.jspark = None
    spark: Any = SimpleNamespace(conf=SimpleNamespace(set=kept.__setitem__))
    session.spark = spark

    session._open("sw-0-1-2", "uuid", latest_start_ms)

    assert opened == [None, "lake", "db.t", "main", "sw-0-1-2", "uuid", until_ms, False]
    assert session.table == "`safewriter`.`sw-0-1-2`.`db`.`t`"
    assert kept == {
        "spark.sql.catalog.safewriter": "io.soal.iceberg.StagingCatalog",
        "spark.sql.catalog.safewriter.cache-enabled": "false",
    }
