from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.durable.attempts import FAILURES_MAX, all_told, kept, lost, pause_s
from tests.unit.handler.durable.results import result, write

if TYPE_CHECKING:
    from handler.outcome.result import Result

NO_COMMIT = [result("TIMED_OUT", "a"), result("FAILED", "b"), lost(1769)]


@pytest.mark.parametrize("state", ["SUCCESS", "SKIPPED", "CANCELLED"])
def test_a_run_that_has_ended_is_not_tried_again(state: str) -> None:
    """Whoever cancels it means it."""
    assert pause_s([result(state, "a")]) is None


@pytest.mark.parametrize("state", ["INCOMPLETE", "FAILED", "TIMED_OUT", "UNKNOWN"])
def test_an_attempt_that_has_committed_a_write_is_followed_at_once(state: str) -> None:
    """Whatever ended it, and however many have failed before."""
    assert pause_s([*NO_COMMIT[:2], result(state, "c", write("c"))]) == 1


@pytest.mark.parametrize("last", NO_COMMIT, ids=["timed out", "failed", "lost"])
def test_attempts_without_a_commit_are_followed_later_and_later_and_not_for_ever(last: Result) -> None:
    """As many in a row as the bound end the execution."""
    found = [pause_s([last] * number) for number in range(1, FAILURES_MAX + 1)]
    assert found == [15, 30, None]
    assert pause_s([last, last, result("INCOMPLETE", "c", write("c")), last]) == 15


def test_what_another_attempt_has_committed_is_no_progress() -> None:
    """A write that is skipped was the other's; one that was undone is none."""
    seen = result("FAILED", "b", write("a"), write("b", status="rolled_back"))
    assert pause_s([result("INCOMPLETE", "a", write("a")), seen]) == 15


def test_a_usage_error_is_not_tried_again() -> None:
    """Event, settings or script must change first."""
    assert pause_s([result("FAILED", "a", usage=True)]) is None


def test_the_document_lists_all_attempts() -> None:
    """The rest of it is the last one's."""
    told = all_told([lost(1769), result("SUCCESS", "b", write("a"), write("b"))])
    assert (told.state, told.run_id) == ("SUCCESS", "b")
    assert [(one.number, one.run_id, one.state, one.error, one.committed) for one in told.attempts] == [
        (1, None, "UNKNOWN", "AttemptLost", 0),
        (2, "b", "SUCCESS", None, 1),
    ]


def test_a_document_that_is_longer_than_the_service_keeps_is_cut_and_says_so() -> None:
    """A backfill of years has thousands of steps. A shorter one is kept as it is."""
    short = result("SUCCESS", "a", write("a"))
    assert kept(short) is short
    many = [write("a", step=f"{number}") for number in range(3000)]
    long = kept(result("INCOMPLETE", "a", *many).model_copy(update={"log_tail": ("x" * 1000,) * 100}))
    assert len(json.dumps(long.document())) < 200_000
    assert long.writes == tuple(many[-200:])
    assert long.warnings == ("the log's tail and 2800 writes are left out here; the document at resultUri has all",)
    assert pause_s([long]) == 1
