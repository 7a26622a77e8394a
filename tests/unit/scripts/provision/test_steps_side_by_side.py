"""Set-up runs steps in parallel, and lets the others end and reports every failure if one fails."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NoReturn

import pytest

from scripts.provision.steps import side_by_side
from soal.console.problem import Failure
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable


def failing(error: BaseException) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise error

    return fail


def test_both_run_at_once() -> None:
    """The parts run in parallel (each waits for the other to start), and the results keep their order."""
    meet = threading.Barrier(2, timeout=BUSY_S)
    assert side_by_side(lambda: ("here", meet.wait() >= 0), lambda: ("beside", meet.wait() >= 0)) == (
        ("here", True),
        ("beside", True),
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_failure_leaves_the_other_part_its_end(first: bool) -> None:  # noqa: FBT001 - pytest gives it
    """If one part fails, the other still runs to its end."""
    done = []
    fails, ends = failing(Failure("no network", todo="plug it in")), lambda: done.append("jars")
    with pytest.raises(Failure, match="no network"):
        side_by_side(*((fails, ends) if first else (ends, fails)))
    assert done == ["jars"]


def test_two_failures_are_both_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Of two failures one is raised, and the other is printed with its remedy."""
    with pytest.raises(Failure, match="no disk"):
        side_by_side(failing(Failure("no disk", todo="buy one")), failing(Failure("no Maven", todo="get it")))
    assert capsys.readouterr().err == "setup: failed: no Maven\n  To do: get it\n"


def test_an_interrupted_part_is_no_failed_one() -> None:
    """Ctrl-C interrupts the first part, and is not taken for a failed command."""
    assert side_by_side(threading.current_thread, threading.current_thread)[0] is threading.current_thread()
    done = []
    with pytest.raises(KeyboardInterrupt):
        side_by_side(failing(KeyboardInterrupt()), lambda: done.append("packages"))
    assert done == ["packages"]
