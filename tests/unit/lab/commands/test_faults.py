"""`scripts/lab faults` runs, reports and replays the campaign, and answers by exit code, table and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from soal.console.problem import EXIT_TRY_AGAIN, EXIT_USAGE, Problem
from tests.lab.__main__ import app
from tests.lab.campaign import running as campaign
from tests.lab.campaign.mutants import running
from tests.lab.campaign.record import SCENARIO_RESULTS, STATES, MutantRecord, ScenarioRecord, StateRecord
from tests.lab.results import OtherResultsError, append

if TYPE_CHECKING:
    from pathlib import Path

STATE = "delta-append-write-1f-20-sweeper-die2"


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


def state(*violations: str) -> StateRecord:
    found = {"state": STATE, "verdict": "rolled_back", "landed": False, "violations": list(violations)}
    return StateRecord.model_validate(found)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (True, 0),
        (False, EXIT_TRY_AGAIN),
        (OtherResultsError("commit is 'a' there"), EXIT_USAGE),
        (ValueError("'hudi' selects no write"), EXIT_USAGE),
    ],
)
def test_a_campaign_says_by_its_exit_code_whether_all_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: object, code: int
) -> None:
    """What is left, or what is wrong, is one sentence."""
    asked: dict[str, object] = {}

    def run(*words: object, **options: object) -> bool:
        asked.update(options, words=words)
        if isinstance(found, Exception):
            raise found
        return bool(found)

    monkeypatch.setattr(campaign, "run", run)
    options = [
        "--tier",
        "random",
        "--seed",
        "7",
        "--faults",
        "9",
        "--seeds",
        "8",
        "--s3",
        "seaweedfs",
        "--budget-min",
        "2",
    ]
    done = CliRunner().invoke(app, ["faults", "run", str(tmp_path), *options])
    assert (done.exception.exit_code if isinstance(done.exception, Problem) else done.exit_code) == code
    assert asked["words"] == (tmp_path, "random")
    assert (asked["seed"], asked["faults"], asked["seeds"]) == (7, 9, 8)
    assert (asked["s3"], asked["budget_s"]) == ("seaweedfs", 120)


@pytest.mark.parametrize(("violations", "code"), [((), 0), (("changed",), 1)])
def test_a_report_says_by_its_exit_code_whether_a_promise_was_broken(
    tmp_path: Path, violations: tuple[str, ...], code: int
) -> None:
    """And how to see it again; of what the results are stands in the JSON."""
    about = {"commit": "abc", "s3": "seaweedfs"}
    (tmp_path / campaign.MANIFEST).write_text(json.dumps(about))
    append(tmp_path / STATES, state(*violations))
    done = CliRunner().invoke(app, ["faults", "report", str(tmp_path), "--json"])
    assert done.exit_code == code
    told = json.loads(done.stdout)
    assert told["manifest"] == about
    assert [(one["tier"], one["cases"], one["broken_cases"]) for one in told["counts"]] == [("replay", 1, code)]
    assert told["broken"] == [STATE] * code
    again = f"scripts/lab faults replay {STATE} --folder {tmp_path} --s3 seaweedfs"
    assert (again in " ".join(done.stderr.split())) is bool(code)


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    """With the command that makes some."""
    done = CliRunner().invoke(app, ["faults", "report", str(tmp_path)])
    assert isinstance(done.exception, Problem)
    assert done.exception.todo == f"scripts/lab faults run {tmp_path}"


@pytest.mark.parametrize("outcome", ["skipped", "kept"])
def test_a_report_counts_no_skipped_scenario_and_says_so(tmp_path: Path, outcome: str) -> None:
    """A folder that holds nothing else holds nothing that counts."""
    (tmp_path / campaign.MANIFEST).write_text('{"commit": "abc", "s3": "moto"}')
    append(tmp_path / SCENARIO_RESULTS, scenario("test_a", outcome), scenario("test_b", "skipped"))
    done = CliRunner().invoke(app, ["faults", "report", str(tmp_path), "--json"])
    if outcome == "skipped":
        assert isinstance(done.exception, Problem)
        return
    told = json.loads(done.stdout)
    assert ([one["cases"] for one in told["counts"]], told["skipped"]) == ([1], 1)
    assert "1 scenarios were skipped" in " ".join(done.stderr.split())


def scenario(name: str, outcome: str) -> ScenarioRecord:
    found = {"test": f"tests/faults/test_reuse_kills.py::{name}", "subject": "reuse", "outcome": outcome}
    return ScenarioRecord.model_validate({**found, "faults": 1, "seconds": 1.0, "error": None})


@pytest.mark.parametrize(("violations", "code"), [((), 0), (("lost",), 1)])
def test_one_case_again_says_by_its_exit_code_whether_it_broke_a_promise(
    monkeypatch: pytest.MonkeyPatch, violations: tuple[str, ...], code: int
) -> None:
    """Its row is shown."""
    monkeypatch.setattr(campaign, "replay", lambda *_: state(*violations))
    done = CliRunner().invoke(app, ["faults", "replay", STATE, "--json"])
    assert done.exit_code == code
    assert json.loads(done.stdout)["violations"] == [*violations]


def test_a_name_of_no_case_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the one who called."""

    def refuse(*_: object) -> None:
        raise ValueError("'x' is no case")

    monkeypatch.setattr(campaign, "replay", refuse)
    done = CliRunner().invoke(app, ["faults", "replay", "x"])
    assert isinstance(done.exception, Problem)
    assert str(done.exception) == "'x' is no case"


@pytest.mark.parametrize(("outcome", "code"), [("kept", 0), ("broken", 1), ("skipped", 1), ("error", 1)])
def test_a_scenario_that_is_replayed_shows_its_test_with_its_parameters(
    monkeypatch: pytest.MonkeyPatch, outcome: str, code: int
) -> None:
    """What was not kept is no success, whatever it was."""
    name = "tests/faults/test_reuse_kills.py::test_a[delta-torn]"
    found = {"test": name, "subject": "reuse", "outcome": outcome, "faults": 1, "seconds": 1.0, "error": None}
    monkeypatch.setattr(campaign, "replay", lambda *_: ScenarioRecord.model_validate(found))
    done = CliRunner().invoke(app, ["faults", "replay", name])
    assert (done.exit_code, "test_a[delta-torn]" in done.output.replace("\n", "")) == (code, True)
