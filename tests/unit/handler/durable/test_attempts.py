"""A durable execution decides after each attempt whether another follows and when, and combines their results."""

from __future__ import annotations

import pytest

from handler.durable.attempts import FAILURES_MAX, Attempt, all_told, pause_s
from safewriter.record.document import NO_CHANGE
from tests.unit.handler.durable.results import attempt, lost, result, write

NO_COMMIT = [attempt("TIMED_OUT", "a", retryable=True), attempt("FAILED", "b"), lost()]
BUSY = attempt("FAILED", "c", retryable=True)
DONE = attempt("INCOMPLETE", "e", write("e"))


@pytest.mark.parametrize("state", ["SUCCESS", "SKIPPED", "CANCELLED"])
def test_a_run_that_has_ended_is_not_tried_again(state: str) -> None:
    """A cancellation is final, and the handler skips only a run of which nothing has begun."""
    assert pause_s([DONE, attempt(state, "a")]) is None


@pytest.mark.parametrize("state", ["INCOMPLETE", "FAILED", "TIMED_OUT", "UNKNOWN"])
def test_an_attempt_that_has_committed_a_write_is_followed_at_once(state: str) -> None:
    """This holds whatever ended the attempt, and however many failed before."""
    assert pause_s([*NO_COMMIT[:2], attempt(state, "c", write("c"))]) == 1


@pytest.mark.parametrize("last", NO_COMMIT, ids=["timed out", "failed", "lost"])
def test_attempts_without_a_commit_are_followed_later_and_later_and_not_for_ever(last: Attempt) -> None:
    """Enough consecutive attempts without a commit end the execution."""
    found = [pause_s([last] * number) for number in range(1, FAILURES_MAX + 1)]
    assert found == [15, 30, None]
    assert pause_s([last, last, DONE, last]) == 15


@pytest.mark.parametrize(
    "seen",
    [
        attempt("FAILED", "b", write("a"), write("b", status="rolled_back")),
        attempt("FAILED", "b", write("b", reason=NO_CHANGE)),
    ],
    ids=["another's", "no change"],
)
def test_what_brings_the_run_no_further_is_no_progress(seen: Attempt) -> None:
    """Another attempt made a skipped write, an undone one is gone, and one without a change is repeated every time."""
    assert pause_s([DONE, seen]) == 15
    assert seen.committed == 0


def test_a_busy_attempt_is_no_failure() -> None:
    """If another attempt lives or a turn is held, the next attempt follows later and later, for about a day."""
    found = [pause_s([DONE, *[BUSY] * number]) for number in (1, 2, 3, 4, 5, 6, 99, 100)]
    assert found == [60, 120, 240, 480, 900, 900, 900, None]
    assert pause_s([NO_COMMIT[1], BUSY, NO_COMMIT[1]]) == 30
    has_run = BUSY.model_copy(update={"result": BUSY.result.model_copy(update={"exit_code": 75})})
    assert pause_s([DONE, has_run]) == 15


def test_a_usage_error_is_not_tried_again() -> None:
    """Event, settings or script must be changed first."""
    assert pause_s([DONE, attempt("FAILED", "a", usage=True, retryable=True)]) is None


def test_the_document_lists_all_attempts() -> None:
    """The other fields are those of the last attempt."""
    told = all_told([lost(), attempt("SUCCESS", "b", write("a"), write("b"))])
    assert (told.state, told.run_id) == ("SUCCESS", "b")
    assert [(one.number, one.run_id, one.state, one.error, one.committed) for one in told.attempts] == [
        (1, None, "UNKNOWN", "AttemptLost", 0),
        (2, "b", "SUCCESS", None, 1),
    ]


def test_a_long_document_is_cut_and_says_so_and_its_commits_are_counted_before() -> None:
    """A backfill of years has thousands of steps, and the service keeps 100 MB of an execution."""
    long = "x" * 100_000
    many = [write("a", step=f"{number}", reason=long) for number in range(3000)]
    left = write("a", step="open", status="unknown")
    whole = result("INCOMPLETE", "a", *many, left)
    assert whole.error is not None
    error = whole.error.model_copy(update={"message": long})
    update = {"log_tail": (long,) * 500, "warnings": (long,) * 500, "state_details": long, "error": error}
    kept = Attempt.of(whole.model_copy(update=update))
    assert len(kept.model_dump_json(by_alias=True)) < 60_000
    assert kept.committed == 3000
    assert left in kept.result.writes
    assert kept.result.warnings[-1] == "2961 writes are left out here; the document at resultUri has all"
    assert len(all_told([kept] * 1500).model_dump_json(by_alias=True)) < 400_000


def test_a_short_document_is_kept_as_it_is() -> None:
    """This holds for the service's history and for the answer."""
    short = result("SUCCESS", "a", write("a"))
    assert Attempt.of(short).result == short
