"""The gate's answers: the state of its block's commit, and the refusal of a statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from safewriter.errors import (
    DeadlineError,
    StoreError,
    SupersededError,
    UnguardedSessionError,
    UnknownOutcomeError,
    UnsupportedError,
)
from safewriter.parsing import parsed
from safewriter.tables.thrown import class_of, thrown_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.errors import SafeWriterError

__all__ = ["SKIPPED", "GateState", "GateStatus", "refusal_in"]

SKIPPED: Final = "this write was committed by an earlier attempt"
"""Why the gate of a skipped block is shut."""
_REFUSED: Final = "io.soal.logstore.Refused"
_MESSAGE: Final = re.compile(r"SafeWriter \[(\w+)\]: (.*)")


def refusal_in(error: BaseException) -> tuple[str, str] | None:
    """Return code and text of the gate's refusal behind an error of Py4J or PySpark; None for any other error."""
    for java in thrown_by(error):
        if class_of(java) == _REFUSED and (match := _MESSAGE.match(str(java.getMessage()))) is not None:
            return match[1], match[2]
    return None


class GateStatus(StrEnum):
    """The state of a block's one commit, as `Gate.java` names it."""

    NONE = "none"
    IN_FLIGHT = "in flight"
    LANDED = "landed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GateState:
    """The gate's record of its block. `passed`: it has sent a commit that S3 has not denied.

    `refusal` is `code: message` of a refused statement that writes rows, or empty.
    `stray`: another table that the block's thread has written, or empty.

    `noted`: it has put a note into the checkpoint bucket. `tries`: how often a commit was sent, rebases included.
    `body`: the version that landed, as the gate has read it back, without the actions of files, and `added_bytes` the
    size of those that it adds; None if the gate has not read it.
    """

    status: GateStatus
    passed: bool
    version: int
    refusal: str
    stray: str
    noted: bool = False
    tries: int = 1
    body: bytes | None = None
    added_bytes: int = 0

    @classmethod
    def parse(cls, text: str) -> GateState:
        """Read the record that `Gate.seen()` returns."""
        fields = parsed(text)
        return cls(**{**fields, "status": GateStatus(fields["status"])})

    @property
    def answered(self) -> bool:
        """Whether every commit that was sent has had its answer."""
        return self.status in (GateStatus.NONE, GateStatus.LANDED)

    @property
    def lost(self) -> str | None:
        """Why the block's write lacks rows: the gate has refused a statement that writes some."""
        return f"a statement of the block was refused ({self.refusal})" if self.refusal else None

    @property
    def strays(self) -> str | None:
        """None: while a block is open, the gate lets no statement of this JVM write its table past it."""
        return None

    def error_of(self, error: Exception) -> SafeWriterError | None:
        """Return the gate's refusal in `error` as a typed error that says what to do; None for any other error, and for
        the refusal of a block that is over.

        It need not be the gate's first refusal.
        """
        refusal = refusal_in(error)
        if refusal is None:
            return None
        code, text = refusal
        kind = _TYPES.get(code)
        return None if kind is None else kind(text)


def _denied(text: str) -> StoreError:
    return StoreError(text, denied=True)


_TYPES: Final[dict[str, Callable[[str], SafeWriterError]]] = {
    **dict.fromkeys(("operation", "second", "recreated", "undo"), UnsupportedError),
    **dict.fromkeys(("session", "thread"), UnguardedSessionError),
    "fenced": SupersededError,
    "denied": _denied,
    "gap": UnknownOutcomeError,
    "late": DeadlineError,
}
