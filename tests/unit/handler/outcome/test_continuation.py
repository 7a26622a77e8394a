"""The handler decides after an INCOMPLETE attempt whether the function invokes itself again to continue the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.outcome.continuation import has_progressed, next_invocation
from handler.outcome.state import State
from handler.request.continuation import Continuation, unwrapped
from safewriter.record.document import Status
from safewriter.settle.supervisor import WriteReport

EVENT = {"entryPoint": "s3://b/a.py"}


def following(state: State = State.INCOMPLETE, before: Continuation | None = None, **more: Any) -> Any:
    given = {"run_key": "k", "continue_max": 3, "progressed": True, **more}
    return next_invocation(state, more.pop("event", EVENT), before, **{k: v for k, v in given.items() if k != "event"})


def report(status: str, run_id: str) -> WriteReport:
    return WriteReport("t", "delta", None, Status(status), None, None, None, None, None, "c", run_id)


def test_an_incomplete_run_goes_on_with_its_event_and_its_key() -> None:
    """The payload that is sent can be read back."""
    sent = following()
    assert sent == Continuation(1, "k", EVENT)
    assert unwrapped(json.loads(sent.payload())) == (EVENT, sent)
    assert following(before=sent) == Continuation(2, "k", EVENT)


@pytest.mark.parametrize("state", [state for state in State if state is not State.INCOMPLETE])
def test_nothing_else_goes_on(state: State) -> None:
    """A success is complete, and a failure would fail again."""
    assert following(state) is None


def test_nothing_goes_on_unless_the_owner_has_allowed_it() -> None:
    """By default a run of several invocations needs a person, since each one costs money."""
    assert following(continue_max=0) is None


def test_a_run_goes_on_only_so_often() -> None:
    """Otherwise a job that never ends would invoke itself, and cost money, for ever."""
    assert "3 times (SOAL_CONTINUE_MAX)" in following(before=Continuation(3, "k", EVENT))


def test_an_attempt_that_committed_nothing_is_the_last() -> None:
    """The next attempt would get no further."""
    assert "committed nothing" in following(progressed=False)


def test_an_event_that_is_too_large_is_not_sent() -> None:
    """Lambda refuses an asynchronous event of that size, so the result says why the run ends here."""
    assert "too large" in following(event={"records": "x" * 300_000})


def test_only_what_this_attempt_has_committed_is_progress() -> None:
    """Writes of earlier attempts are skipped every time."""
    assert has_progressed([report("committed", "me")], "me")
    assert not has_progressed([report("committed", "earlier"), report("rolled_back", "me")], "me")
