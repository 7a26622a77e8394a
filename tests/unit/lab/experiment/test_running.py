"""An interrupted experiment resumes in its folder, makes its data once, and mixes in no other one's results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

import pytest

from tests.lab.experiment import running
from tests.lab.experiment.record import RunRecord
from tests.lab.experiment.running import Settings
from tests.lab.results import OtherResultsError, read
from tests.unit.lab.experiment.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.lab.experiment.plan import Run

pytestmark = pytest.mark.slow

SETTINGS = Settings(plan="ours", scale=0.04, seed=1, small=None)


class Laboratory:
    """Carries out nothing; fails at the run whose name it is told."""

    fails_at: str | None = None
    seen: list[str] = []  # noqa: RUF012 - one for all, as a test makes only one

    def __init__(self, datasets: Mapping[str, object]) -> None:
        assert set(datasets) == {"22k"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def carry_out(self, run: Run, *, keeps_requests: bool) -> RunRecord:
        self.seen.append(f"{run.id} {keeps_requests}")
        if run.id == self.fails_at:
            raise RuntimeError(run.id)
        spans = [{"operation": "PutObject", "key_class": "data", "began_ms": 1, "ended_ms": 2}]
        return record(run, requests=spans if keeps_requests else [])


@pytest.fixture(autouse=True)
def laboratory(monkeypatch: pytest.MonkeyPatch) -> type[Laboratory]:
    monkeypatch.setattr(running, "Laboratory", Laboratory)
    monkeypatch.setattr(Laboratory, "seen", [])
    monkeypatch.setattr(Laboratory, "fails_at", None)
    return Laboratory


def test_a_data_set_is_made_once_for_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds for the largest one, and there are a thousand runs."""
    made: list[int] = []
    monkeypatch.setattr(running, "generated", made.append)
    running.run(SETTINGS, tmp_path, jobs=2)
    assert made == [22_248]


def test_an_interrupted_experiment_goes_on(tmp_path: Path, laboratory: type[Laboratory]) -> None:
    """What is done is not done again, and the requests of a cell are kept once."""
    laboratory.fails_at = "O-iceberg-22k-baseline-guarded-002"
    with pytest.raises(RuntimeError):
        running.run(SETTINGS, tmp_path, jobs=2)
    first = {one.run_id for one in read(tmp_path / "runs.jsonl", RunRecord)}
    laboratory.fails_at = None
    laboratory.seen.clear()
    heard: list[tuple[int, int]] = []
    running.run(SETTINGS, tmp_path, jobs=2, progress=lambda done, total: heard.append((done, total)))
    records = read(tmp_path / "runs.jsonl", RunRecord)
    assert len(records) == len({one.run_id for one in records}) == 6
    assert not first & {seen.split()[0] for seen in laboratory.seen[2:]}, "beside the two that warm up"
    assert heard[0] == (len(first), 6)
    assert heard[-1] == (6, 6)
    traced = [one.cell for one in records if one.requests]
    assert sorted(traced) == sorted({one.cell for one in records})


def test_a_finished_experiment_does_nothing(tmp_path: Path, laboratory: type[Laboratory]) -> None:
    """Not even to warm up."""
    running.run(SETTINGS, tmp_path, jobs=1)
    laboratory.seen.clear()
    running.run(SETTINGS, tmp_path, jobs=1)
    assert laboratory.seen == []


@pytest.mark.parametrize(("name", "value"), [("seed", 2), ("plan", "paper"), ("commit", "abc"), ("cores", 99)])
def test_the_results_of_another_experiment_are_not_mixed_in(tmp_path: Path, name: str, value: object) -> None:
    """Of another plan, seed, commit or machine."""
    running.run(SETTINGS, tmp_path, jobs=1)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, name: value}))
    with pytest.raises(OtherResultsError, match=f"{name} is {value!r} there"):
        running.run(SETTINGS, tmp_path, jobs=1)
