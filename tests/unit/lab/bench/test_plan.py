"""A full run of the benchmarks follows its plan: it resumes, leaves out impossible steps, outlives failed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.bench import plan
from tests.lab.bench.plan import FULL, SHORT, Step
from tests.lab.bench.record import append, read

if TYPE_CHECKING:
    from pathlib import Path

STEPS = (Step(("guard", "--rounds", "2")), Step(("image",), needs_docker=True))


@pytest.fixture
def whence() -> dict[str, Any]:
    """Where results are from: a commit without changes."""
    return {"commit": "0123456789ab", "versions": {"pyspark": "4"}, "cores": 2}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, whence: dict[str, Any]) -> list[str]:
    """The steps that are measured, each with a result."""
    done: list[str] = []
    monkeypatch.setattr("tests.lab.bench.record.about", lambda: whence)
    monkeypatch.setattr(plan, "about", lambda: whence)

    def measure(step: Step, path: Path) -> None:
        done.append(str(step))
        append(path, step.words, {})

    monkeypatch.setattr(plan, "_measured", measure)
    return done


def test_an_interrupted_run_goes_on(measured: list[str], whence: dict[str, Any], tmp_path: Path) -> None:
    """A step with other options, or of another commit, is another one."""
    results = tmp_path / "results.jsonl"
    append(results, ["guard", "--rounds", "3"], {})
    first = plan.run(STEPS[:1], results, docker=True)
    again = plan.run(STEPS, results, docker=True)
    assert measured == ["guard --rounds 2", "image"]
    assert ([one.kept for one in first], [one.kept for one in again]) == ([False], [True, False])
    whence["commit"] = "another"
    plan.run(STEPS[:1], results, docker=True)
    assert measured[2:] == ["guard --rounds 2"]
    assert len(read(results)) == 4


def test_nothing_is_taken_over_of_a_commit_with_changes(
    measured: list[str], whence: dict[str, Any], tmp_path: Path
) -> None:
    """Nobody can tell what it measured."""
    whence["commit"] = "0123456789ab+"
    for _ in range(2):
        plan.run(STEPS[:1], tmp_path / "results.jsonl", docker=True)
    assert measured == ["guard --rounds 2"] * 2


def test_what_needs_the_image_is_left_out_with_a_reason(measured: list[str], tmp_path: Path) -> None:
    """The others are measured."""
    one, other = plan.run(STEPS, tmp_path / "results.jsonl", docker=False)
    assert (one.problem, measured) == (None, ["guard --rounds 2"])
    assert other.problem is not None
    assert "soal image build" in other.problem


@pytest.mark.slow
def test_a_step_that_fails_is_told_and_the_next_one_runs(tmp_path: Path) -> None:
    """The message is that of the command."""
    bad, other = plan.run(
        [Step(("guard", "--format", "hudi")), Step(("guard", "--rounds", "none"))],
        tmp_path / "results.jsonl",
        docker=False,
    )
    assert bad.problem is not None
    assert "there is no format 'hudi'" in bad.problem
    assert other.problem is not None
    assert read(tmp_path / "results.jsonl") == ()


def test_a_full_run_has_each_benchmark_and_a_short_one_needs_no_docker() -> None:
    """`scripts/lab bench --help` names them, and others whose results have files of their own."""
    names = {step.words[0] for step in FULL}
    assert names == {"image", "start", "floor", "warm", "guard", "scale", "snapshot", "variants"}
    assert {step.needs_docker for step in FULL if "--docker" in step.words or step.words[0] == "image"} == {True}
    assert not any(step.needs_docker for step in SHORT)
