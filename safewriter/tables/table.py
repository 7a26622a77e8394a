"""What a table format gives to whoever settles a write: where the write stands, and what leads it to its verdict.

`Table` is the whole of it. It looks at the table, does the one next thing that is needed there, and says what the
document is to say then; the document itself is changed by compare-and-swap in `recovery`, never here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from safewriter.record.document import AttemptRecord, Checkpoint, Status
    from safewriter.tables.session import Seen

__all__ = ["Intent", "Landed", "Move", "RetentionGapError", "Table", "Trace"]


class RetentionGapError(LookupError):
    """The table no longer holds everything that would have to be looked at, or it is another table."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the settler wants of a write that the table leaves open. `cause` begins the reason in the document.

    `undo`: nothing of it is to stay. `nothing_sent`: no commit of the attempt was ever sent, so none can land.
    """

    cause: str
    undo: bool
    nothing_sent: bool


@dataclass(frozen=True, slots=True)
class Landed:
    """What the checkpoint remembers of our commit: the table's version or snapshot, and what it holds if that is
    known.
    """

    commit_version: int
    rows: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """What the document is to say next: a verdict, or what is about to be done to the table, before it is done."""

    status: Status
    reason: str | None = None
    landed: Landed | None = None
    undo_refused: str | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The fields of the attempt that it changes."""
        return {} if self.landed is None else asdict(self.landed)


@dataclass(frozen=True, slots=True)
class Trace:
    """A write as its table alone tells of it. `epoch`: the highest that the table knows. `landed`: None if it holds the
    write no more; `before`: the version before the commit that it holds. `succeeded`: `success()` has been called, or
    it would not be there.
    """

    epoch: int
    landed: Landed | None = None
    before: int = -1
    succeeded: bool = False


class Table(Protocol):
    """One guarded table, without Spark. Every method may raise `StoreError` or `RetentionGapError`."""

    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Bring the write of an open document one step nearer to its verdict, and return what the document is to say.

        A move to an open state is written before the act that it announces; that act is the next call's.
        """
        ...

    def confirm(self, document: Checkpoint, seen: Seen) -> Move:
        """Return what `success()` may say after what the session has seen; raise if the write is not what it should be.

        An open state (something has yet to be done to the table) is then settled as everywhere.
        """
        ...

    def remove_leftovers(
        self,
        document: Checkpoint,  # noqa: ARG002 - a format whose files nobody deletes by hand needs none of them
        attempts: tuple[AttemptRecord, ...],  # noqa: ARG002
        earlier: tuple[AttemptRecord, ...] = (),  # noqa: ARG002
    ) -> int:
        """Delete what ended attempts of a write have left and nobody refers to; return how many files went.

        `earlier`: those that were cleaned up after before, of which something may have come late. Unless a format
        says otherwise, nothing is deleted here.
        """
        return 0

    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        """Look for a write of which no document tells, of any epoch, in what the table has gained since a time (epoch
        milliseconds); None if it knows nothing of it.

        Raises `RetentionGapError` if the table does not show all of that, or does not decide.
        """
        ...
