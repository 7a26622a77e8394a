"""An event that continues a run is told from a job's own event, and its run key from one that a caller may claim."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from handler.durable.execution import execution_id
from handler.input_errors import InputError
from handler.request.continuation import Continuation, unwrapped
from handler.request.trigger import Trigger
from safewriter.identity import Run

EVENT = {"entryPoint": "s3://b/a.py"}


@pytest.mark.parametrize("event", ["s3://b/a.py", {}, EVENT, {"continuation": {}, "other": 1}, ["x"], None])
def test_any_other_event_is_a_first_invocation(event: object) -> None:
    """This includes an event with a field of that name among others."""
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
    """The error names the problem; nothing is started."""
    with pytest.raises(InputError) as caught:
        unwrapped({"continuation": document})
    assert caught.value.field == field


@pytest.mark.parametrize(
    "key", ["a\nb", "token\n", "stream 4f0c4b0e-1f0b-4f5e-9d3e-0a1b2c3d4e5f", "a b", "a/b", "\u0430", "t" * 81]
)
def test_a_continuation_names_no_key_that_no_event_may_have(key: str) -> None:
    """Otherwise a sender of events could claim the next batch of a stream, whose key has a blank."""
    with pytest.raises(InputError) as caught:
        unwrapped({"continuation": {"count": 1, "token": key, "event": {}}})
    assert caught.value.field == "continuation.token"


def test_no_key_of_a_run_is_one_that_a_continuation_may_not_name() -> None:
    """Keys of triggers and requests have the form of a clientToken; keys of streams do not."""
    trigger = Trigger({}, "s3:in/\u65e5/a b.csv//").run_key("jobs")
    assert trigger is not None
    for key in (trigger, str(uuid.uuid4()), execution_id(f"arn:{'x' * 70}/{'y' * 70}"), execution_id("arn:x/a-1")):
        assert unwrapped(json.loads(Continuation(1, key, {}).payload())) == ({}, Continuation(1, key, {}))
    stream = Run("k", "i").of_stream("q", "r").key
    with pytest.raises(InputError):
        unwrapped(json.loads(Continuation(1, stream, {}).payload()))
