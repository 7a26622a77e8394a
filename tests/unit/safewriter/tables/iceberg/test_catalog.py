from __future__ import annotations

from typing import Any

import pytest

from safewriter.tables.iceberg import catalog
from safewriter.tables.iceberg.catalog import OneTable
from safewriter.tables.iceberg.name import TableName


def test_a_rotated_secret_reaches_a_catalog_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyiceberg reads its variables when it is imported; a warm function lives on, and its password does not.

    What the session says of the catalog wins over variables, as it always did.
    """
    opened: list[tuple[str, dict[str, Any]]] = []

    def load(name: str, **properties: Any) -> object:
        opened.append((name, properties))
        return object()

    monkeypatch.setattr(catalog, "load_catalog", load)
    one = OneTable(
        TableName.parse("lake.db.t"), {"type": "rest", "uri": "https://session"}, lambda _: pytest.fail("no store")
    )
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "https://environment")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__OAUTH2__CREDENTIAL", "id:first")
    first = one._opened()
    assert one._opened() is first
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__OAUTH2__CREDENTIAL", "id:second")
    assert one._opened() is not first

    assert [properties["oauth2.credential"] for _, properties in opened] == ["id:first", "id:second"]
    assert {properties["uri"] for _, properties in opened} == {"https://session"}
