"""`scripts/demo` warns of a missing archive, refuses options without effect, and reports an account that fails."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from handler.spark.archive import archive_of
from scripts.demonstration import acts, demo
from scripts.demonstration.account import playing
from scripts.demonstration.stage import Claims, Demo, Format
from soal.console.problem import Problem
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


@pytest.mark.parametrize(
    "words",
    [
        ["--account", "--durable"],
        ["--account", "--format", "iceberg"],
        ["--account", "--s3", "seaweedfs"],
        ["--image", "x"],
        ["--record", "x"],
        ["--profile", "x"],
        ["--account", "--yes"],
        ["--account", "--profile", "x", "--record", "x"],
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says what to leave out or to add."""
    monkeypatch.setattr(sys, "argv", ["demo", *words])

    with pytest.raises(SystemExit):
        demo.main()

    assert "--account" in capsys.readouterr().err.splitlines()[-1]


def test_an_account_that_cannot_begin_is_a_claim_that_is_not_true(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to do, and an exit code."""

    def play(*_: object) -> None:
        raise Problem("no bridge", todo="start Docker")

    monkeypatch.setattr(playing, "play", play)
    monkeypatch.setattr(sys, "argv", ["demo", "--account", "--json"])

    assert demo.main() == 1
    (claim,) = json.loads(capsys.readouterr().out)
    assert claim == {"text": "the job could be run: no bridge (to do: start Docker)", "holds": False}
