"""The interface between a settler and a table format: the next step towards a write's verdict.

A `Table` reads the table, takes the one next step that is needed there, and returns what the document should say then.
Only `recovery` changes the document, by compare-and-swap.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from safewriter.bounds import shortened, whole

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from safewriter.record.document import AttemptRecord, Checkpoint, Status
    from safewriter.tables.session import BlockReport

__all__ = ["Intent", "Landed", "Move", "Table", "Trace", "UndecidableError"]


class UndecidableError(LookupError):
    """The table does not decide: it is damaged or another table, lacks what a settler must read, or takes no fence."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


@dataclass(frozen=True, slots=True)
class Intent:
    """How to settle a write, if the table leaves a choice. `cause` begins the reason in the document.

    `undo`: a landed commit must not stay. `nothing_sent`: no commit of the attempt was ever sent, so none can land.
    """

    cause: str
    undo: bool
    nothing_sent: bool


@dataclass(frozen=True, slots=True)
class Landed:
    """Our commit as the checkpoint records it: the table's version or snapshot, and rows and bytes if known.

    Rows and bytes of more than 64 bits, which no table has, become None. Raises `UndecidableError` for such a
    version.
    """

    commit_version: int
    rows: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "bytes"):
            try:
                whole(getattr(self, name))
            except ValueError:
                object.__setattr__(self, name, None)
        try:
            whole(self.commit_version)
        except ValueError as error:
            raise UndecidableError(f"the commit's version {error}, so the table is damaged") from None


@dataclass(frozen=True, slots=True)
class Move:
    """The document's next state: a verdict, or an act on the table that it announces."""

    status: Status
    reason: str | None = None
    landed: Landed | None = None
    undo_refused: str | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The fields of the attempt that this move changes."""
        return {} if self.landed is None else asdict(self.landed)


@dataclass(frozen=True, slots=True)
class Trace:
    """A write as its table alone shows it. `epoch`: the highest that the table knows. `landed`: None if the table no
    longer holds the write; `before`: the version before its commit. `succeeded`: the table shows that `success()` was
    called. `properties`: those that the document of a write which was found so has of its attempt.
    """

    epoch: int
    landed: Landed | None = None
    before: int = -1
    succeeded: bool = False
    properties: dict[str, str] = field(default_factory=dict)


class Table(Protocol):
    """One guarded table, without Spark. Every method may raise `StoreError` or `UndecidableError`."""

    def held(self) -> AbstractContextManager[None]:
        """Return the block of one settling, in which the table may keep what it has read, if that cannot change."""
        return nullcontext()

    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Take one step towards the verdict of an open document, and return what the document should say next.

        The caller writes a move to an open state before the act that it announces; the next call does that act.
        """
        ...

    def confirm(self, document: Checkpoint, report: BlockReport) -> Move:
        """Return the move that `success()` makes, from what the session has seen; raise if the table lacks the write.

        The caller settles an open state (the table still needs an act) as usual.
        """
        ...

    def remove_leftovers(
        self,
        document: Checkpoint,  # noqa: ARG002 - a format whose files nobody deletes by hand needs none of them
        attempts: tuple[AttemptRecord, ...],  # noqa: ARG002
        earlier: tuple[AttemptRecord, ...] = (),  # noqa: ARG002
        *,
        dead_nonce: str | None = None,  # noqa: ARG002
    ) -> int:
        """Delete files of ended attempts that nothing refers to; return their number.

        `earlier`: attempts that were cleaned up before, whose files may have arrived late. `dead_nonce`: an attempt of
        which the caller itself knows that it commits no more. Of any other only the table can show that: its document
        may be false. By default nothing is deleted.
        """
        return 0

    def remove_skipped(self, document: Checkpoint, nonce: str) -> int:  # noqa: ARG002 - as above
        """Delete the files of a block that was skipped, since the write is committed; return their number."""
        return 0

    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        """Look for a write that has no document, of any epoch, in the table's changes since a time (epoch
        milliseconds); None if they show nothing of it.

        Raises `UndecidableError` if the table does not show all those changes, or does not decide.
        """
        ...

    def trace_from(self, write_key: str, version: int) -> Trace | None:
        """Look for a write, of any epoch, in a version and all that follow; the session has seen it there
        (`Session.named_since`). None if the table does not hold it; raises `UndecidableError` if that is unknown.
        """
        ...

    def trace_undone(self, write_key: str, attempt: AttemptRecord) -> Trace | None:  # noqa: ARG002 - as above
        """Look for a write whose attempt was undone: somebody may have brought its rows back.

        Raises `UnknownOutcomeError` if the table does not tell. By default None: most formats undo nothing.
        """
        return None
