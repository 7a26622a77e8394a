"""The record of a run, and the request to end it: two small documents in the checkpoint bucket."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from safewriter.bounds import TEXT_MAX

__all__ = ["RUNNING", "SUCCESS", "CancelRequest", "RunRecord"]

RUNNING: Final = "RUNNING"
"""The state of an attempt that has not ended, or was killed."""
SUCCESS: Final = "SUCCESS"
"""The state of an attempt that succeeded: `State.SUCCESS`."""


_Moment = Annotated[int, Field(ge=0, le=200_000_000_000_000)]
"""Epoch milliseconds up to the year 8307: a much later time can neither be shown nor added to."""
_Number = Annotated[int, Field(ge=0, lt=2**63)]


class RunRecord(BaseModel):
    """The content of the object. `state` is RUNNING, or the state of the last attempt's result."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, str_max_length=TEXT_MAX
    )

    schema_version: Literal[1] = 1
    run_key: str
    fingerprint: str
    name: str | None
    entry_point: str
    attempt: _Number
    run_id: str
    previous_run_id: str | None
    request_id: str
    state: str
    started_ms: _Moment
    deadline_ms: _Moment
    ended_ms: _Moment | None = None
    result_uri: str
    execution: str | None = None
    """The ARN of the durable execution that makes the attempts."""
    code: str | None = None
    """The hash of the last attempt's script and Python files; None: no attempt fetched them."""
    settings: str | None = None
    """The hash of the last attempt's settings (`Job.settings`); None: an older version wrote the record."""
    event: str | None = None
    """The hash of the event that triggered the run (`Job.event`); None: an older version wrote the record."""
    turn: tuple[str, str] | None = None
    """The lock and the job of the run's turn; None: no turn, or an older version wrote the record."""
    turn_completed: bool = False
    """The run has completed its turn, or had succeeded before it had one: another turn of it does not count."""
    may_hold_writes: bool = True
    """False: every earlier attempt has reported that it left no committed write and no write without a verdict."""
    of_several_scripts: bool = False
    """An attempt began with other code than its predecessor's while the run held, or may have held, writes. Then no
    script made all of the writes, and an attempt may continue the run only if its own event allows it.
    """
    reason: str | None = None
    """Why the attempt has this state."""


class CancelRequest(BaseModel):
    """A request by `soal runs cancel` to end one attempt, or all attempts of a durable execution: the reason, for
    people, and the time of the request.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)

    schema_version: Literal[1] = 1
    reason: str
    requested_ms: _Moment
