"""`python -m tests.lab.pictures` draws from true facts, and names a false claim instead of drawing it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.lab.pictures.__main__ import main
from tests.lab.pictures.facts import write_facts
from tests.support.pictures import FACTS, state

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def redraw(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["pictures", "--redraw", "--out", str(folder)])
    return main()


def test_true_facts_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both pictures stand beside the facts."""
    write_facts(FACTS, tmp_path / "runs.json")
    assert redraw(tmp_path, monkeypatch) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"kill.svg", "runs.json", "write.svg"}


def test_a_false_claim_is_named_and_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No picture shows what the runs have not shown."""
    *kills, last = FACTS.kills
    write_facts(replace(FACTS, kills=(*kills, replace(last, retried=state(2)))), tmp_path / "runs.json")
    assert redraw(tmp_path, monkeypatch) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]
    assert "NOT TRUE: guarded, killed after the verdict: after the retry the batch is in the table once" in (
        capsys.readouterr().err.replace("\n", " ")
    )
