"""Children of a supervisor, and the path of their journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.safewriter.settle.supervised import Children

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the journal."""
    return tmp_path / "journal"


@pytest.fixture
def children(path: Path, monkeypatch: pytest.MonkeyPatch) -> Children:
    return Children(path, monkeypatch)
