"""The event by which the function continues a run: the run's first event, and the run key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from handler.input_errors import InputError, validated
from handler.request.event_fields import Token
from handler.settings import CONTINUE_MAX

__all__ = ["Continuation", "unwrapped"]

_FIELD: Final = "continuation"


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    count: Annotated[int, Field(ge=1, le=CONTINUE_MAX)]
    token: Token
    event: Any


@dataclass(frozen=True, slots=True)
class Continuation:
    """The `count`-th invocation that continues the run `client_token`; `event` is that of the first invocation."""

    count: int
    client_token: str
    event: Any

    def payload(self) -> bytes:
        """Return the event of that invocation."""
        document = {"count": self.count, "token": self.client_token, "event": self.event}
        return json.dumps({_FIELD: document}, separators=(",", ":")).encode()


def unwrapped(event: object) -> tuple[object, Continuation | None]:
    """Return the first event of a run, and the continuation; None for a first invocation."""
    if not isinstance(event, dict) or set(event) != {_FIELD}:
        return event, None
    # The inner event may be another service's, of any size.
    document = validated(_Document, event[_FIELD], prefix=_FIELD, depth=1)
    if isinstance(document.event, dict) and set(document.event) == {_FIELD}:
        raise InputError(_FIELD, "holds another continuation; its event is the first one's")
    return document.event, Continuation(document.count, document.token, document.event)
