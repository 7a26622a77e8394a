"""An Iceberg table with a foreign snapshot, and a block's session whose calls are recorded, both without a JVM."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.tables.iceberg.metadata import LiveTable
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.session import IcebergSession
from tests.unit.safewriter.tables.iceberg.bench import Bench
from tests.unit.safewriter.tables.iceberg.staging import CATALOG

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A table with one foreign snapshot of ten rows."""
    return Bench(tmp_path, monkeypatch)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls in their order, lines of the journal included."""
    found: list[str] = []
    monkeypatch.setattr(
        "safewriter.record.journal.append",
        lambda where, what, **more: found.append(f"{what} in {where} by {more['nonce']}"),
    )
    return found


@pytest.fixture
def session(done: list[str]) -> IcebergSession:
    """A block's session before its transaction is open."""
    made = object.__new__(IcebergSession)
    made._name = TableName.parse("lake.db.t")
    made._catalog = CATALOG
    made._java, made._table = None, (None, "lake", ["db", "t"])
    made._staging = None
    made._live, made._mark = LiveTable({}, None, "s3://lake/t/metadata/7.json"), None
    made._strays = None
    made._sent, made._answered, made._journal = False, True, None
    made._restore = []
    made.jspark = None
    catalog = SimpleNamespace(refreshTable=lambda name: done.append(f"refreshed {name}"))
    spark: Any = SimpleNamespace(conf={}, catalog=catalog)
    made.spark = spark
    return made
