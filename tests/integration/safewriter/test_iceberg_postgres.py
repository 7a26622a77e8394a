"""Fences in a database with many writers: PostgreSQL's own server, pyiceberg's tables."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.support.postgres import USER, Postgres, find_postgres
from tests.support.waiting import BUSY_S
from tests.unit.safewriter.tables.iceberg.fenced import FENCE, FencedTable, fenced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.tables.iceberg.metadata import LiveTable

# The server runs as another user, who cannot enter a run's folder.
pytestmark = [pytest.mark.slow, pytest.mark.matrix]

SETTLERS = 8


class PostgresTable(FencedTable):
    """A table in a server with a password."""

    def __init__(self, address: str, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
        login = {"jdbc.user": USER, "jdbc.password": password}
        self.properties = {
            "type": "jdbc",
            "uri": f"jdbc:postgresql://{address}",
            "warehouse": "s3://lake/w",
            **login,
        }
        super().__init__(monkeypatch)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresTable]:
    if find_postgres() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt install postgresql)")
    with Postgres("secret%/:@") as server:
        made = PostgresTable(server.address, "secret%/:@", monkeypatch)
        yield made
        made.catalog.engine.dispose()


def test_of_many_fences_at_once_one_wins(table: PostgresTable) -> None:
    """All have read the same version; the others are too late, and the table is as if pyiceberg had fenced it once."""
    before, fence, together = table.load(), table.fence(), threading.Barrier(SETTLERS)

    def settle(held: LiveTable) -> bool:
        together.wait(BUSY_S)
        return table.pointer().commit(held, fence)

    read = [table.pointer().read() for _ in range(SETTLERS)]
    with ThreadPoolExecutor(SETTLERS) as pool:
        won = list(pool.map(settle, [held for held in read if held is not None]))

    assert sorted(won) == [False] * (SETTLERS - 1) + [True]
    after = table.load()
    assert FENCE in after.metadata.refs
    expected = fenced(before, fence).model_copy(update={"last_updated_ms": after.metadata.last_updated_ms})
    assert after.metadata == expected


def test_a_table_that_is_gone(table: PostgresTable) -> None:
    """A read returns None, and a fence is too late."""
    held, fence = table.pointer().read(), table.fence()
    table.catalog.drop_table(table.name.identifier)
    assert held is not None
    assert not table.pointer().commit(held, fence)
    assert table.pointer().read() is None
