"""The events as lines of JSON: the windows in which batches ran, and the turns of the lock.

`python -m tests.lab.turns.events` prints the schema of a line.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from safewriter.coordination.record import End
from tests.lab.turns.workload import Job

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["EVENT", "Event", "Group", "TurnEvent", "Window", "read_events", "write_events"]

Group = Literal["without", "with"]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    group: Group = Field(description="Without or with the coordinator.")
    job: Job
    began_ms: int = Field(description="Epoch milliseconds, by the one clock of the machine.")
    ended_ms: int


class Window(_Event):
    """One call of a stream's batch function, from start to end; in the group `with` it holds the turn."""

    kind: Literal["window"] = "window"
    batch: int = Field(description="The stream's own number of the batch.")
    outcome: Literal["landed", "conflict", "failed"]
    error: str = Field("", description="The conflict's name, or the failure's words.")
    kept: int = Field(0, description="Requests that Mutation kept for its next turn, as their rows were not there.")
    taken_up: int = Field(0, description="Requests kept before that this batch applied.")


class TurnEvent(_Event):
    """One turn in the lock's record: it ends when the stream has recorded the batch."""

    kind: Literal["turn"] = "turn"
    token: int
    end: End


Event = Annotated[Window | TurnEvent, Field(discriminator="kind")]

EVENT: Final[TypeAdapter[Window | TurnEvent]] = TypeAdapter(Event)


def write_events(events: Iterable[Window | TurnEvent], path: Path) -> None:
    """Write one line for each event."""
    path.write_text("".join(f"{event.model_dump_json()}\n" for event in events), encoding="utf-8")


def read_events(path: Path) -> list[Window | TurnEvent]:
    """Read the events."""
    return [EVENT.validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    print(json.dumps(EVENT.json_schema(), indent=2))
