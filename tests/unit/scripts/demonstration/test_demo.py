from __future__ import annotations

import io
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from handler.spark.archive import archive_of
from scripts.demonstration import acts, demo
from scripts.demonstration.stage import Claims, Demo, Format
from soal.console.screen import Screen
from soal.home import Home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("is_there", [True, False])
def test_a_demonstration_without_an_archive_says_so(
    is_there: bool,  # noqa: FBT001 - a row's field
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The demonstration says that it starts without a class-data archive, which makes Spark slow."""
    monkeypatch.setattr(acts, "play", lambda *_: None)
    if is_there:
        archive_of(tmp_path).touch()
    console = Screen(file=io.StringIO(), width=200)
    stage = Demo(console, MagicMock(), Home(tmp_path), Claims(console), MagicMock(spec=Format))
    demo._play(stage, durable=False)
    assert ("without a class-data archive" in console.file.getvalue()) is not is_there  # type: ignore[attr-defined]
