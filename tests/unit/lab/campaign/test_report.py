"""The campaign's report counts cases, states, scenarios and scripts, and names each that broke a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.campaign.record import (
    CASES,
    SCENARIO_RESULTS,
    SCHEDULES,
    SCRIPT_RESULTS,
    STATES,
    CaseRecord,
    ScenarioRecord,
    ScheduleBlock,
    ScheduleRecord,
    ScriptRecord,
    StateRecord,
)
from tests.lab.campaign.report import Results, broken_in, counts
from tests.lab.results import append

if TYPE_CHECKING:
    from pathlib import Path


def record(case: str, *violations: str, hit: bool = True) -> CaseRecord:
    return CaseRecord.model_validate(
        {
            "case": case,
            "hit": hit,
            "operation": "PutObject",
            "key_class": "data",
            "exposed": True,
            "acknowledged": False,
            "returncode": -9,
            "verdict": None,
            "landed": False,
            "orphans": 0,
            "violations": list(violations),
            "seconds": 1.0,
            "error": None,
        }
    )


def state(name: str, *violations: str) -> StateRecord:
    found = {"state": name, "verdict": "rolled_back", "landed": False, "violations": list(violations)}
    return StateRecord.model_validate(found)


def scenario(name: str, outcome: str, faults: int = 1) -> ScenarioRecord:
    found = {"test": f"tests/faults/test_reuse_kills.py::{name}", "subject": "reuse", "outcome": outcome}
    return ScenarioRecord.model_validate({**found, "faults": faults, "seconds": 1.0, "error": None})


def script(name: str, *violations: str) -> ScriptRecord:
    found = {"script": name, "family": "sinks", "format": "delta", "attempts": [], "violations": list(violations)}
    return ScriptRecord.model_validate({**found, "seconds": 1.0, "error": None})


def test_scripts_are_counted_by_format_and_family(tmp_path: Path) -> None:
    """One that was repeated after an error of the harness counts once, and one that broke a promise by its name."""
    lost = "delta-sinks-save-as-table"
    lines = [script(lost, "harness_error"), script(lost, "lost"), script("delta-sinks-plain"), script(lost)]
    append(tmp_path / SCRIPT_RESULTS, *lines)
    found = Results.of(tmp_path, "delta sinks")
    (one,) = counts(found)
    assert (one.tier, one.subject, one.guarded, one.cases, one.broken_cases) == ("scripts", "delta sinks", True, 2, 1)
    assert broken_in(found) == [lost]


def test_schedules_are_counted_by_their_seeds(tmp_path: Path) -> None:
    """A broken one is named by what is left of it; the effort is that of all."""
    found = {"whole": "schedule-3", "members": [], "outcomes": [], "what": ["it"], "trace": []}
    bad = ScheduleRecord.model_validate({"schedule": "schedule-3-f", "violations": ["lost"], **found})
    lines = [
        ScheduleBlock(first=first, seeds=500, requests=9, outcomes={}, broken=broken, seconds=2.5)
        for first, broken in ((0, [bad]), (500, []))
    ]
    append(tmp_path / SCHEDULES, *lines)
    results = Results.of(tmp_path)
    (one,) = counts(results)
    assert (one.tier, one.subject, one.guarded, one.cases, one.broken_cases) == ("schedules", "delta", True, 1000, 1)
    assert broken_in(results) == ["schedule-3-f"]
    assert results.effort == {"seeds": 1000, "requests": 18, "seconds": 5.0}
    assert Results().effort is None


def test_what_broke_with_a_guard_is_named() -> None:
    """So that it can be replayed."""
    cases = [record("delta-append-plain-after-01", "doubled"), record("delta-append-guarded-after-01", "gap")]
    states = [state("delta-append-write-3-4-sweeper-end", "lost"), state("delta-append-write-3-4-sweeper-die1")]
    scenarios = [scenario("test_a_turn", "broken"), scenario("test_another", "kept"), scenario("test_none", "skipped")]
    assert broken_in(Results(cases, states, scenarios)) == [
        "delta-append-guarded-after-01",
        "delta-append-write-3-4-sweeper-end",
        "tests/faults/test_reuse_kills.py::test_a_turn",
    ]


def test_cases_are_counted_by_format_and_guard() -> None:
    """Those that were not hit only end a sequence; without a guard only wrong rows count."""
    found = counts(
        Results(
            [
                record("delta-append-plain-after-01", "unacknowledged", "doubled"),
                record("delta-append-plain-after-02", "orphans", "unacknowledged"),
                record("delta-append-plain-after-03", "doubled", hit=False),
                record("delta-append-guarded-after-01"),
                record("delta-append-guarded-after-02", hit=False),
                record("iceberg-merge-guarded-torn-01", "orphans"),
            ],
            [state("delta-append-write-3-4-sweeper-end"), state("delta-append-write-3-4-sweeper-die1", "unknown")],
        )
    )
    assert [(one.tier, one.subject, one.guarded, one.cases, one.broken_cases) for one in found] == [
        ("live", "delta", True, 1, 0),
        ("live", "delta", False, 2, 1),
        ("live", "iceberg", True, 1, 1),
        ("replay", "delta", True, 2, 1),
    ]
    assert (found[1].broken["doubled"], found[1].broken["lost"]) == (1, 0)
    assert [one.exposed for one in found] == [1, 2, 1, None]


def test_scenarios_count_by_their_faults() -> None:
    """What was skipped proves nothing, and counts for nothing."""
    scenarios = [scenario("one", "kept", 9), scenario("two", "error"), scenario("three", "skipped", 5)]
    (found,) = counts(Results(scenarios=scenarios))
    assert (found.tier, found.subject, found.guarded, found.cases) == ("scenarios", "reuse", True, 10)
    assert (found.broken_cases, found.broken["harness_error"], found.exposed) == (1, 1, None)


@pytest.mark.parametrize(("first", "broken"), [("harness_error", 0), ("gap", 1)])
def test_of_a_case_that_was_carried_out_again_the_first_line_that_tells_counts(
    tmp_path: Path, first: str, broken: int
) -> None:
    """A harness error tells nothing; a broken promise does not pass by being tried again."""
    name = "random-1-7-delta-append-guarded"
    append(tmp_path / CASES, record(name, first), record("random-1-8-delta-append-guarded"), record(name))
    (found,) = counts(Results.of(tmp_path))
    assert (found.cases, found.broken_cases) == (2, broken)


@pytest.mark.parametrize(("first", "broken"), [("error", 0), ("skipped", 0), ("broken", 1)])
def test_so_does_the_first_line_of_a_scenario_that_tells(tmp_path: Path, first: str, broken: int) -> None:
    """A test that failed is a broken promise, whatever it does the next time."""
    append(tmp_path / SCENARIO_RESULTS, scenario("test_one", first), scenario("test_one", "kept"))
    (found,) = counts(Results.of(tmp_path))
    assert (found.cases, found.broken_cases) == (1, broken)


def test_a_part_of_the_results_is_chosen_by_words_of_its_names(tmp_path: Path) -> None:
    """As `scripts/lab faults run` chooses: all of them must be there, and those behind a minus must not."""
    append(tmp_path / CASES, record("delta-append-guarded-torn-01"), record("delta-merge-guarded-torn-01"))
    append(tmp_path / STATES, state("delta-append-write-3-4-sweeper-end"))
    append(tmp_path / SCENARIO_RESULTS, scenario("test_append", "kept", 3), scenario("test_merge", "kept", 4))
    chosen = {
        select: [one.cases for one in counts(Results.of(tmp_path, select))] for select in ("append", "reuse -append")
    }
    assert chosen == {"append": [1, 1, 3], "reuse -append": [4]}


def test_only_faults_by_chance_have_a_bound_and_only_where_nothing_broke() -> None:
    """The other tiers try all there is."""
    names = ["random-1-7-delta-append-guarded", "random-1-8-delta-append-guarded"]
    whole, broken = ([record(one) for one in names], [record(names[0]), record(names[1], "lost")])
    assert [one.upper_bound for one in counts(Results(whole))] == [pytest.approx(1 - 0.05**0.5)]
    assert [one.upper_bound for one in counts(Results(broken))] == [None]
    assert [one.upper_bound for one in counts(Results([record("delta-append-guarded-after-01")]))] == [None]
