"""The facts about an attempt once its job has ended and its writes are settled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from handler.redaction.redact import Redactor, redact
from handler.spark.missing_dependencies import Raised

if TYPE_CHECKING:
    from collections.abc import Iterable

    from handler.process.child import Ended
    from handler.process.memory_kills import MemoryKills
    from handler.spark.missing_dependencies import Missing
    from safewriter.record.journal import Entry, Event
    from safewriter.settle.supervisor import WriteReport

__all__ = ["JobEvidence", "own_exit"]

_MESSAGE_MAX_LENGTH: Final = 4000
_LINE_MAX_LENGTH: Final = 200


def own_exit(journal: Iterable[Entry]) -> int | None:
    """Return how the script's process has ended, as its fork server saw it: its exit code, or minus the signal."""
    codes = (entry.fields.get("exitCode") for entry in journal if entry.event == "driver_ended")
    return next((code for code in codes if type(code) is int), None)


@dataclass(frozen=True, slots=True)
class JobEvidence:
    """The facts after a job's end. `writes` is None if they could not be settled, for the reason in `unsettled`. If
    both are set, `unsettled` says why there may be other writes.
    """

    ended: Ended
    journal: tuple[Entry, ...]
    writes: tuple[WriteReport, ...] | None
    unsettled: str
    memory_kills: MemoryKills
    """The kernel's kills for memory while the job ran."""
    saw_java_out_of_memory: bool
    retry: str
    """How to retry the run, for messages."""
    turn_lost: str | None = None
    """Why the job's turn was lost, or was about to be lost; None: it was not."""
    redactor: Redactor = redact
    missing: tuple[Missing, ...] = ()
    """The dependencies that the image lacks."""
    uncaught: dict[str, Any] | None = field(init=False)
    """The exception that ended the script: its `type`, its `message` without secrets, the script's `line` in brackets,
    and `exitCode`.
    """
    refusal: dict[str, Any] | None = field(init=False)
    """How the script ended itself with an exit code: `message` and `line` as above, and whether it is `ofArguments`."""

    def __post_init__(self) -> None:
        # Once: a search for secrets takes its time.
        object.__setattr__(self, "uncaught", self._told("uncaught", "type", "message", "exitCode"))
        object.__setattr__(self, "refusal", self._told("python_exited", "message", "ofArguments"))

    @property
    def exited(self) -> int | None:
        """The exit code that the script asked for; None if it did not end by itself. Its threads may have run on: only
        `ended.own_exit` tells how the process ended.
        """
        return next((entry.fields.get("exitCode") for entry in self.journal if entry.event == "python_exited"), None)

    def _told(self, event: Event, *fields: str) -> dict[str, Any] | None:
        rows = (entry.fields for entry in self.journal if entry.event == event)
        row = next((row for row in rows if row.keys() >= {*fields}), None)
        if row is None:
            return None
        text, line = ("" if row.get(name) is None else str(row[name]) for name in ("message", "line"))
        message = self.redactor.shortened(text, _MESSAGE_MAX_LENGTH, is_cut=row.get("isCut") is True)
        return {**row, "message": message, "line": line and f" ({self.redactor.shortened(line, _LINE_MAX_LENGTH)})"}

    @property
    def own_error(self) -> str | None:
        """The exception that ended the script, in words, with the line of the script."""
        if (row := self.uncaught) is None:
            return None
        words = f"{row['type']}: {row['message']}".rstrip(": ")
        return f"{words}{row['line']}"

    @property
    def raised(self) -> tuple[Raised, ...]:
        """The exception that ended the script and its causes, the outermost first."""
        fields = [entry.fields for entry in self.journal if entry.event == "raised"]
        return tuple(
            Raised(str(entry.get("type")), entry.get("ofSpark") is True, str(entry.get("text"))) for entry in fields
        )
