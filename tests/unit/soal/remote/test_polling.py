"""States are told once, and errors that pass are waited out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import StoreError
from soal.console.problem import Problem
from soal.invocation.report import Report
from soal.remote.polling import polled

if TYPE_CHECKING:
    from collections.abc import Iterable

END = Report(None, "ended", 1, 0)
ERRORS_MAX = 20


def poll(answers: Iterable[Report | str | Exception], *, refused: bool = False) -> tuple[Report, list[str]]:
    """Poll something that answers, or fails, in this order; return the report and the states that were told."""
    left, told = iter(answers), list[str]()

    def look() -> Report | str:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    report = polled(
        look,
        told.append,
        is_refused=lambda _: refused,
        lost=lambda error: Problem(str(error), todo="wait"),
        poll_s=0,
    )
    return report, told


def test_each_new_state_is_told_once() -> None:
    """A state that is not known is none."""
    assert poll(["pending", "pending", "", "pending", "running", END]) == (END, ["pending", "running"])


def test_errors_that_pass_are_waited_out() -> None:
    """Twenty in a row, and again after an answer."""
    errors = [StoreError("slow down")] * ERRORS_MAX
    assert poll([*errors, "running", *errors, END]) == (END, ["running"])


def test_an_error_more_ends_the_waiting() -> None:
    """And so does the first one that is a refusal."""
    with pytest.raises(Problem, match="slow down"):
        poll([*[StoreError("slow down")] * (ERRORS_MAX + 1), END])
    with pytest.raises(Problem, match="denied"):
        poll([StoreError("denied"), END], refused=True)
