"""Children of a supervisor, and where their journal lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.safewriter.settle.supervised import Children

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal lies."""
    return tmp_path / "journal"


@pytest.fixture
def children(path: Path, monkeypatch: pytest.MonkeyPatch) -> Children:
    return Children(path, monkeypatch)
