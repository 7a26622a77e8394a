from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.safewriter.tables.iceberg.bench import Bench

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A table with one foreign snapshot of ten rows."""
    return Bench(tmp_path, monkeypatch)
