"""The experiment classifies the end of a run twice: by its exit code as the paper does, and by the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.experiment.judging import Found, outcome_of, truth_of


def found(code: int, added: int, verdict: str | None = None, *, fails: bool = False) -> Found:
    guarded = verdict is not None
    verdict = None if verdict == "no document" else verdict
    return Found(code, missed=False, guarded=guarded, fails=fails, added=added, expected=10, verdict=verdict)


@pytest.mark.parametrize(
    ("run", "outcome", "truth"),
    [
        pytest.param(found(0, 10), "success", "success", id="plain, done"),
        pytest.param(found(0, 0), "success", "silent_loss", id="plain, says done, nothing there"),
        pytest.param(found(-9, 0), "silent_loss", "silent_loss", id="plain, killed before the commit"),
        pytest.param(found(-9, 10), "silent_loss", "committed_when_killed", id="plain, killed after the commit"),
        pytest.param(found(1, 0), "visible_error", "visible_error", id="plain, an error"),
        pytest.param(found(1, 10), "visible_error", "damaged", id="plain, an error after the commit"),
        pytest.param(found(-9, 7), "silent_loss", "damaged", id="plain, a part"),
        pytest.param(found(0, 20), "success", "damaged", id="plain, twice"),
        pytest.param(found(0, 10, "committed"), "success", "success", id="guarded, done"),
        pytest.param(found(0, 10, "rolled_back"), "success", "false_verdict", id="guarded, done, denied"),
        pytest.param(found(0, 0, "committed"), "success", "false_verdict", id="guarded, claimed"),
        pytest.param(found(-9, 0, "rolled_back"), "rollback_success", "rollback_success", id="guarded, killed"),
        pytest.param(found(-9, 10, "committed"), "rollback_success", "committed_when_killed", id="guarded, landed"),
        pytest.param(found(-9, 0, "in_progress"), "rollback_success", "false_verdict", id="guarded, not settled"),
        pytest.param(found(-9, 0, "no document"), "rollback_success", "false_verdict", id="guarded, no document"),
        pytest.param(found(1, 0, "rolled_back"), "visible_error", "visible_error", id="guarded, an error"),
        pytest.param(found(0, 0, "rolled_back", fails=True), "rollback_success", "rollback_success", id="undone"),
        pytest.param(found(0, 10, "committed", fails=True), "rollback_success", "damaged", id="not undone"),
    ],
)
def test_each_end_has_a_name_by_its_exit_code_and_one_by_its_table(run: Found, outcome: str, truth: str) -> None:
    """The two disagree where the exit code cannot know."""
    assert (outcome_of(run), truth_of(run)) == (outcome, truth)


def test_a_run_that_was_to_be_killed_and_was_not_is_no_success() -> None:
    """Whatever the table holds."""
    assert truth_of(replace(found(0, 10), missed=True)) == "not_killed"
