"""The state of the world: one table, one document, markers, notes, files, requests in the air, processes.

States are tuples, so that they can be hashed and compared. Statuses and causes are the code's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tests.model.iceberg.table import Table

if TYPE_CHECKING:
    from safewriter.record.document import Status
    from safewriter.settle.recovery import Cause
    from tests.model.iceberg.table import Commit

T = TypeVar("T")

__all__ = [
    "CLOSED",
    "FENCE",
    "FOREIGN",
    "LOOK",
    "NOTE",
    "OURS",
    "REMOVES",
    "RESTORE",
    "REVERT",
    "REWRITE",
    "SCHEMA_NOTE",
    "STRAY",
    "TRANSACTION",
    "Claim",
    "Doc",
    "Entry",
    "Gate",
    "Proc",
    "Request",
    "Settling",
    "State",
    "changed",
]

FOREIGN = "foreign"
REWRITE = "rewrite"
OURS = "ours"
FENCE = "fence"
REVERT = "revert"
STRAY = "stray"
RESTORE = "restore"
LOOK = "look"

REMOVES = "removes"
TRANSACTION = "transaction"

NOTE = "note"
SCHEMA_NOTE = "note with schema"
CLOSED = "tombstone"


class Entry(NamedTuple):
    """A version of the log. `slot`: the version that a revert undoes, a rewrite rewrites, a restore brings back or a
    look has found, and so changed nothing. `epoch`: 0 without a mark.

    `more`: what our commit does besides adding files: it removes some, or has the script's own transaction.
    """

    kind: str
    attempt: int = -1
    epoch: int = 0
    slot: int = -1
    more: str = ""


class Claim(NamedTuple):
    """An attempt in the document; its epoch is its position in the list, from 1."""

    attempt: int
    before: int
    cleaned: bool = False


class Doc(NamedTuple):
    """The checkpoint document. `named`: it names a commit of its owner. `no_change`: the program declared that it has
    nothing to write. `incomplete`: rows of its block are missing. `deliveries`: those whose block has claimed or
    skipped the write. `etag`: the number of its writes.
    """

    status: Status
    claims: tuple[Claim, ...]
    named: bool = False
    no_change: bool = False
    incomplete: bool = False
    deliveries: frozenset[int] = frozenset()
    etag: int = 0

    @property
    def epoch(self) -> int:
        return len(self.claims)

    @property
    def owner(self) -> int:
        return self.claims[-1].attempt

    @property
    def before(self) -> int:
        return self.claims[-1].before


class Request(NamedTuple):
    """A conditional write to S3, or to a catalog (`commit`).

    `place` is a slot, an epoch, or an ETag (0: the object must not exist).
    """

    kind: str  # document, log, note, data, catalog
    attempt: int
    place: int = 0
    doc: Doc | None = None
    entry: Entry | None = None
    note: str = ""
    commit: Commit | None = None


class Gate(NamedTuple):
    """The gate of an attempt's block. `journal`: it has the commit's line. `refused`: the first refusal's code."""

    status: str = "none"  # none, in flight, landed, unknown: the words of Gate.java
    version: int = -1
    passed: bool = False
    refused: str = ""
    shut: bool = False
    noted: bool = False
    closed: bool = False
    journal: bool = False


class Settling(NamedTuple):
    """A settle in progress. `epoch`: the only one to settle (0: any). `then`, `failed`: the steps to return to. `lost`:
    a statement of the block was refused.
    """

    cause: Cause
    epoch: int
    nothing_sent: bool
    quiet: int  # the attempt whose requests have all ended, or -1
    then: str
    failed: str
    seen: Doc | None = None
    ours: int = -1
    by_me: bool = False
    spared: tuple[int, ...] = ()
    over: tuple[int, ...] = ()  # attempts whose grace was over when the document was read
    cleans_later: bool = False
    lost: bool = False


class Proc(NamedTuple):
    """A process: its step, the document that it holds, and the request that it sends next."""

    at: str = "off"
    held: Doc | None = None
    request: Request | None = None
    settling: Settling | None = None
    before: int = -1
    slot: int = 0
    answer: str = ""


class State(NamedTuple):
    """The whole state. Tuples over attempts are indexed by attempt."""

    log: tuple[Entry, ...]
    doc: Doc | None
    notes: tuple[str, ...]  # by epoch - 1
    markers: tuple[bool, ...]
    files: tuple[str, ...]  # none, there, deleted, stray (written after the grace)
    gates: tuple[Gate, ...]
    clocks: tuple[int, ...]  # 0 in time, 1 the lead time has begun, 2 deadline and grace are over
    expired: tuple[bool, ...]  # leases
    procs: tuple[Proc, ...]
    air: tuple[Request, ...]
    foreign: int
    faults: int
    gap: bool = False
    broken: str = ""
    table: Table = Table()  # Iceberg's; Delta's is the log

    def live(self) -> list[int]:
        """Return the slots of our commits that are in the table."""
        undone = {entry.slot for entry in self.log if entry.kind == REVERT}
        return [slot for slot, entry in enumerate(self.log) if entry.kind == OURS and slot not in undone]

    def restored(self) -> set[int]:
        """Return the slots of our undone commits whose rows somebody has brought back."""
        return {entry.slot for entry in self.log if entry.kind == RESTORE}

    def refers(self, attempt: int) -> bool:
        """Return whether a version refers to an attempt's files."""
        return any(entry.kind == OURS and entry.attempt == attempt for entry in self.log)

    def proc(self, who: int, **changes: object) -> State:
        """Return the state with one process changed."""
        changed = self.procs[who]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(procs=(*self.procs[:who], changed, *self.procs[who + 1 :]))

    def gate(self, attempt: int, **changes: object) -> State:
        """Return the state with one gate changed."""
        return self.gated(attempt, self.gates[attempt]._replace(**changes))  # type: ignore[arg-type]

    def gated(self, attempt: int, gate: Gate) -> State:
        """Return the state with one gate replaced."""
        return self._replace(gates=changed(self.gates, attempt, gate))

    def marker(self, attempt: int, *, there: bool) -> State:
        """Return the state with or without one marker."""
        return self._replace(markers=changed(self.markers, attempt, there))

    def spend(self) -> State:
        """Return the state with one fault less to come."""
        return self._replace(faults=self.faults - 1)


def changed(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    """Return a tuple with one place changed."""
    return (*values[:at], value, *values[at + 1 :])
