from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from handler.durable.execution import execution_id
from handler.input_errors import InputError
from handler.outcome.continuation import Continuation, has_progressed, next_invocation, unwrapped
from handler.outcome.state import State
from handler.request.trigger import Trigger
from safewriter.identity import Run
from safewriter.record.document import Status
from safewriter.settle.supervisor import WriteReport

EVENT = {"entryPoint": "s3://b/a.py"}


def following(state: State = State.INCOMPLETE, before: Continuation | None = None, **more: Any) -> Any:
    given = {"run_key": "k", "continue_max": 3, "progressed": True, **more}
    return next_invocation(state, more.pop("event", EVENT), before, **{k: v for k, v in given.items() if k != "event"})


def report(status: str, run_id: str) -> WriteReport:
    return WriteReport("t", "delta", None, Status(status), None, None, None, None, None, "c", run_id)


def test_an_incomplete_run_goes_on_with_its_event_and_its_key() -> None:
    """And what is sent is read back as it was meant."""
    sent = following()
    assert sent == Continuation(1, "k", EVENT)
    assert unwrapped(json.loads(sent.payload())) == (EVENT, sent)
    assert following(before=sent) == Continuation(2, "k", EVENT)


@pytest.mark.parametrize("state", [state for state in State if state is not State.INCOMPLETE])
def test_nothing_else_goes_on(state: State) -> None:
    """A success is done, and a failure would fail again."""
    assert following(state) is None


def test_nothing_goes_on_unless_the_owner_has_allowed_it() -> None:
    """By default a run of several invocations needs a person, since each one costs money."""
    assert following(continue_max=0) is None


def test_a_run_goes_on_only_so_often() -> None:
    """A job that never ends would otherwise invoke itself, and cost money, for ever."""
    assert "3 times (SOAL_CONTINUE_MAX)" in following(before=Continuation(3, "k", EVENT))


def test_an_attempt_that_committed_nothing_is_the_last() -> None:
    """The next one would stand where this one stood."""
    assert "committed nothing" in following(progressed=False)


def test_an_event_that_is_too_large_is_not_sent() -> None:
    """Lambda refuses an asynchronous event of that size, so the result says why the run ends here."""
    assert "too large" in following(event={"records": "x" * 300_000})


def test_only_what_this_attempt_has_committed_is_progress() -> None:
    """What earlier ones have committed is skipped every time."""
    assert has_progressed([report("committed", "me")], "me")
    assert not has_progressed([report("committed", "earlier"), report("rolled_back", "me")], "me")


@pytest.mark.parametrize("event", ["s3://b/a.py", {}, EVENT, {"continuation": {}, "other": 1}, ["x"], None])
def test_any_other_event_is_a_first_invocation(event: object) -> None:
    """Also one that has a field of that name among others."""
    assert unwrapped(event) == (event, None)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "continuation.count"),
        ({"count": 0, "token": "k", "event": {}}, "continuation.count"),
        ({"count": 1001, "token": "k", "event": {}}, "continuation.count"),
        ({"count": True, "token": "k", "event": {}}, "continuation.count"),
        ({"count": 1, "token": "", "event": {}}, "continuation.token"),
        ({"count": 1, "token": "\u20ac" * 1400, "event": {}}, "continuation.token"),
        ({"count": 1, "token": "k"}, "continuation.event"),
        ({"count": 1, "token": "k", "event": {}, "x": 1}, "continuation.x"),
        ({"count": 1, "token": "k", "event": {"continuation": {}}}, "continuation"),
    ],
)
def test_a_continuation_that_is_not_ours_is_refused(document: dict[str, Any], field: str) -> None:
    """It names what is wrong; nothing is started."""
    with pytest.raises(InputError) as caught:
        unwrapped({"continuation": document})
    assert caught.value.field == field


@pytest.mark.parametrize(
    "key", ["a\nb", "token\n", "stream 4f0c4b0e-1f0b-4f5e-9d3e-0a1b2c3d4e5f", "a b", "a/b", "\u0430", "t" * 65]
)
def test_a_continuation_names_no_key_that_no_event_may_have(key: str) -> None:
    """Whoever may send events could claim the next batch of a stream, whose key has a blank."""
    with pytest.raises(InputError) as caught:
        unwrapped({"continuation": {"count": 1, "token": key, "event": {}}})
    assert caught.value.field == "continuation.token"


def test_no_key_of_a_run_is_one_that_a_continuation_may_not_name() -> None:
    """Those of triggers and requests have the form of a clientToken, and those of streams have not."""
    trigger = Trigger({}, "s3:in/\u65e5/a b.csv//").run_key("jobs")
    assert trigger is not None
    for key in (trigger, str(uuid.uuid4()), execution_id(f"arn:{'x' * 70}/{'y' * 70}"), execution_id("arn:x/a-1")):
        assert unwrapped(json.loads(Continuation(1, key, {}).payload())) == ({}, Continuation(1, key, {}))
    stream = Run("k", "i").of_stream("q", "r").key
    with pytest.raises(InputError):
        unwrapped(json.loads(Continuation(1, stream, {}).payload()))
