from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from scripts.campaign.mutants import running
from scripts.campaign.record import MutantRecord
from scripts.soal.app import app

if TYPE_CHECKING:
    from pathlib import Path


def record(name: str, outcome: str, by: str | None = None) -> MutantRecord:
    found = {"name": name, "guard": "It fences.", "file": "f", "outcome": outcome, "by": by, "seconds": 1.0}
    return MutantRecord.model_validate({**found, "error": "pytest ended with 4" if outcome == "error" else None})


def mutants(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str, found: tuple[MutantRecord, ...] = ()
) -> Result:
    monkeypatch.setattr(running, "run", lambda *_, **__: found)
    return CliRunner().invoke(app, ["faults", "mutants", str(folder), *options])


def test_mutants_that_were_all_caught_are_a_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The table names guard and test, with the test's parameters."""
    done = mutants(monkeypatch, tmp_path, found=(record("no-fence", "caught", "t.py::test[a]"),))
    assert done.exit_code == 0
    assert all(word in done.output for word in ("no-fence", "It fences.", "t.py::test[a]"))


@pytest.mark.parametrize("outcome", ["survived", "error"])
def test_a_mutant_that_was_not_caught_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: str) -> None:
    """The exit code is 1; stdout holds one JSON value all the same."""
    found = (record("no-fence", "caught", "t"), record("no-mark", outcome))
    done = mutants(monkeypatch, tmp_path, "--json", found=found)
    assert done.exit_code == 1
    assert f"{outcome}: no-mark" in done.stderr
    assert [one["outcome"] for one in json.loads(done.stdout)] == ["caught", outcome]


def test_words_that_name_no_mutant_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is tried then."""
    assert mutants(monkeypatch, tmp_path, "--select", "nothing-of-the-kind").exit_code != 0
