"""The command line invokes a run again with the same event while an attempt says that this helps, up to a maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from handler.outcome.result import WriteResult
from handler.outcome.state import State
from soal.console.problem import Problem
from soal.invocation.report import Report, until_done
from tests.unit.handler.outcome.test_result import error, result

if TYPE_CHECKING:
    from handler.outcome.result import Result


EVENT = {"clientToken": "t"}


def committed(run_id: str) -> WriteResult:
    return WriteResult(
        table="t", format="delta", step=None, status="committed", version=1, rows=1, bytes=1, reason=None,
        undo_refused=None, checkpoint="c", run_id=run_id,
    )  # fmt: skip


def late(by: str) -> Result:
    """Return a result of attempt r: it reached its deadline after a commit by the attempt `by`."""
    return result(State.INCOMPLETE, error(retryable=True), writes=(committed(by),))


def answers(*given: Result | None) -> tuple[list[object], Any]:
    """Return a function with these answers, in order, and the list of its events."""
    events: list[object] = []

    def invoke(event: object) -> Report:
        events.append(event)
        found = given[len(events) - 1]
        return Report(found, None if found is not None else "killed", 0, 1)

    return events, invoke


@pytest.mark.parametrize(
    "first",
    [late("r"), None, result(State.FAILED, error(retryable=True))],
    ids=["after progress", "killed", "try again"],
)
def test_a_run_that_can_go_on_is_invoked_again_with_the_same_event(first: Result | None) -> None:
    """The same event is invoked again until an attempt needs no further one."""
    events, invoke = answers(first, result())
    remarks: list[str] = []
    report = until_done(invoke, EVENT, attempts_max=5, remark=remarks.append)
    assert report.result == result()
    assert events == [EVENT, EVENT]
    assert len(remarks) == 1


@pytest.mark.parametrize(
    "last",
    [result(), late("earlier"), result(State.TIMED_OUT, error(retryable=True)), result(State.FAILED, error()),
     result(State.UNKNOWN, error())],
    ids=["success", "no progress", "timed out", "failed", "unknown"],
)  # fmt: skip
def test_a_run_that_would_end_the_same_way_again_is_not_invoked_again(last: Result) -> None:
    """A run that would end the same way is not invoked again; its last result is returned."""
    events, invoke = answers(last)
    assert until_done(invoke, EVENT, attempts_max=5, remark=lambda _: None).result == last
    assert len(events) == 1


def test_an_event_that_names_no_run_is_not_invoked_at_all() -> None:
    """A second attempt would write the committed rows of the first again."""
    events, invoke = answers(late("r"), result())
    with pytest.raises(Problem, match="names no run"):
        until_done(invoke, {"x": 1}, attempts_max=5, remark=lambda _: None)
    assert events == []


def test_there_is_an_end_to_patience() -> None:
    """After the maximum of attempts the last report is returned."""
    events, invoke = answers(late("r"), late("r"), late("r"))
    assert until_done(invoke, EVENT, attempts_max=3, remark=lambda _: None).result == late("r")
    assert len(events) == 3
