"""The campaign's workers carry out wrong scripts, a line for each, and skip those that already have a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pytest

from tests.lab.campaign.record import SCRIPT_RESULTS, ScriptRecord
from tests.lab.campaign.running import is_broken
from tests.lab.campaign.wrong import running
from tests.lab.campaign.wrong.listing import SCRIPTS
from tests.lab.results import append, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.campaign.wrong.script import Script

NAMES = [*SCRIPTS][:3]


def record(name: str, *violations: str) -> ScriptRecord:
    found = {"script": name, "family": "sinks", "format": "delta", "attempts": [], "violations": list(violations)}
    return ScriptRecord.model_validate({**found, "seconds": 1.0, "error": None})


class Laboratory:
    """Carries out nothing."""

    def __init__(self, s3: str) -> None:
        assert s3 == "moto"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def carry_out(self, script: Script) -> ScriptRecord:
        return record(script.name)


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WrongLaboratory", Laboratory)


def done_in(folder: Path) -> list[str]:
    return [one.script for one in read(folder / SCRIPT_RESULTS, ScriptRecord)]


def test_a_worker_adds_a_line_for_each_script(tmp_path: Path) -> None:
    """In their order."""
    assert running._some(NAMES, tmp_path, None, "moto")
    assert done_in(tmp_path) == NAMES


def test_no_script_begins_when_the_time_is_over(tmp_path: Path) -> None:
    """And the worker says that some are left."""
    assert not running._some(NAMES, tmp_path, 0.0, "moto")
    assert done_in(tmp_path) == []


def test_a_script_that_told_something_is_not_carried_out_again(tmp_path: Path) -> None:
    """One that met an error of the harness is; here none is left, so no worker begins."""
    append(tmp_path / SCRIPT_RESULTS, record(NAMES[0], "lost"))
    finished = running.run(tmp_path, NAMES[:1], jobs=1, until=None, s3="moto", progress=lambda: None)
    assert finished
    assert done_in(tmp_path) == NAMES[:1]
    assert not record(NAMES[1], "harness_error").tells


def test_one_script_is_carried_out_again_by_its_name() -> None:
    """And judged as a case is."""
    assert running.replay(NAMES[0], "moto").script == NAMES[0]
    assert not is_broken(record(NAMES[0]))
    assert is_broken(record(NAMES[0], "lost"))
