"""What the gate decides, as a function of what it is told: for the search (`gate.py`), and for the comparison with
`Gate.java` and `Blocks.java` on generated histories (`gate_world.py`, `test_gate_as_built.py`).

A check without a rule of its own cannot be taken away: in the search it never refuses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.model.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from collections.abc import Set as AbstractSet
    from enum import Enum

    from tests.model.state import Gate

__all__ = [
    "BRING_BACK",
    "CODES",
    "GUARDED",
    "Block",
    "Commit",
    "Found",
    "Machine",
    "Statement",
    "check",
    "closed",
    "fence",
    "find",
    "landed",
    "look",
    "lost",
    "needs_note",
    "opened",
    "refused",
    "sent",
    "unknown",
    "unmarked",
]

CODES: Final = (
    *("session", "thread", "over", "shut", "late", "second", "operation", "recreated", "undo", "gap", "fenced"),
    "denied",
)
"""Why the gate refuses."""
CHANGE_ROWS: Final = ("RESTORE", "CLONE", "CONVERT")
"""Operations of no block that change rows."""
GUARDED: Final = (
    *("WRITE", "MERGE", "UPDATE", "DELETE", "TRUNCATE"),
    *("CREATE TABLE", "CREATE TABLE AS SELECT", "REPLACE TABLE", "REPLACE TABLE AS SELECT"),
    *("CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT"),
)
BRING_BACK: Final = (
    *("RESTORE", "CLONE", "CONVERT", "COMPUTE STATS", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"),
)
_KEY: Final = re.compile(r"sw-[0-9a-f]{32}")
_SHUTTING: Final = ("gap", "fenced")


class Commit(NamedTuple):
    """What the gate must know of a commit. `prefixes`: of the blocks, dead or alive, whose new files it brings in.
    `changes_table`: its schema or properties. `more`: it removes files, or bears a transaction of the script's own.
    """

    target: int
    operation: str = "WRITE"
    prefixes: frozenset[object] = frozenset()
    changes_table: bool = False
    more: bool = False

    @property
    def writes_rows(self) -> bool:
        return self.operation in GUARDED


class Statement(NamedTuple):
    """Where a commit comes from. `executions`: Spark's numbers, the innermost first."""

    thread: object
    session: object
    executions: tuple[int, ...] = ()


class Block(NamedTuple):
    """What a block is opened with. `undoable`: only what an undo could take back may pass. `ran_before`: the
    executions that ran already.
    """

    table: object
    thread: object
    session: object
    prefix: object
    epoch: int
    claimed_at: int
    undoable: bool = False
    ran_before: frozenset[int] = frozenset()

    @property
    def creates(self) -> bool:
        """Whether there was no table."""
        return self.claimed_at < 0


class Machine(NamedTuple):
    """The blocks of one JVM. `left`: the executions that outlived a block, the latest block first."""

    open: tuple[Block, ...] = ()
    ended: tuple[Block, ...] = ()
    left: tuple[tuple[int, Block], ...] = ()

    def is_busy(self, session: object) -> bool:
        """Tell whether a block is open on a session."""
        return any(block.session == session for block in self.open)


class Found(NamedTuple):
    """Whose a commit is. `code`: it is refused. `told`: the blocks that learn of the refusal. `over`: the one that has
    ended, whose journal learns of it. `strays`: those whose own statement has gone to another table.
    """

    block: Block | None = None
    code: str = ""
    told: tuple[tuple[Block, str], ...] = ()
    over: Block | None = None
    strays: tuple[Block, ...] = ()


# -- whose a commit is -------------------------------------------------------------------------------------------------


def opened(machine: Machine, block: Block) -> Machine:
    """Begin a block."""
    return machine._replace(open=(*machine.open, block))


def closed(machine: Machine, block: Block, running: AbstractSet[int]) -> Machine:
    """End a block; `running` are the executions that go on."""
    outliving = tuple((number, block) for number in sorted(running - block.ran_before))
    return Machine(
        tuple(other for other in machine.open if other is not block),
        (*machine.ended, block),
        (*outliving, *(one for one in machine.left if one[0] in running)),
    )


def find(rules: Collection[Enum], machine: Machine, table: object, statement: Statement, commit: Commit) -> Found:
    """Return the block that a commit belongs to, or why it may not be made."""
    here = [block for block in machine.open if block.table == table]
    for block in here:
        if (statement.thread, statement.session) == (block.thread, block.session):
            return Found(block)
    strays = tuple(block for block in machine.open if block.table != table and statement.thread == block.thread)
    told = tuple(
        (block, _stranger(block, statement))
        for block in here
        if Rule.GATE_ALONE in rules and _may_be_of(block, statement, commit)
    )
    if told:
        return Found(None, told[0][1], told, strays=strays)
    over = _left_by(machine, table, statement, commit) if Rule.GATE_OVER in rules else None
    return Found(None, "" if over is None else "over", over=over, strays=strays)


def _may_be_of(block: Block, statement: Statement, commit: Commit) -> bool:
    began_before = bool(statement.executions) and statement.executions[0] in block.ran_before
    return block.prefix in commit.prefixes or (commit.writes_rows and not began_before)


def _stranger(block: Block, statement: Statement) -> str:
    return "session" if statement.thread == block.thread else "thread"


def _left_by(machine: Machine, table: object, statement: Statement, commit: Commit) -> Block | None:
    """Return the block that has ended and whose statement makes the commit, if there is one."""
    outlived = (
        block
        for number in statement.executions
        for left, block in machine.left
        if (left, block.table) == (number, table)
    )
    named = (block for block in machine.ended if block.table == table and block.prefix in commit.prefixes)
    found = next(outlived, None) if commit.writes_rows else None
    return found or (None if commit.operation in BRING_BACK else next(named, None))


# -- what of a commit is sent ------------------------------------------------------------------------------------------


def unmarked(transactions: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the transactions of a commit without those of blocks: each is added by the gate of its block only."""
    return tuple(one for one in transactions if not _KEY.fullmatch(one[0]))


# -- whether a commit of a block passes --------------------------------------------------------------------------------


def check(rules: Collection[Enum], gate: Gate, block: Block, commit: Commit, *, late: bool) -> str:
    """Return why a block's commit may not be sent, by what is known without a look at the table; or nothing."""
    if not commit.writes_rows:
        return "operation"
    if gate.shut and Rule.GATE_SHUT in rules:
        return "shut"
    if late and Rule.GATE_CLOCK in rules:
        return "late"
    if gate.status in ("landed", "in flight") and Rule.GATE_ONCE in rules:
        return "second"
    if commit.target <= block.claimed_at:
        return "recreated"
    is_undoable = not commit.more and (block.creates or not commit.changes_table)
    return "undo" if block.undoable and not is_undoable and Rule.GATE_UNDOABLE in rules else ""


def look(rules: Collection[Enum], block: Block, between: Iterable[int | None]) -> str:
    """Return why a block's commit may not be sent, by the versions between claim and slot: of each the epoch with which
    it bears the block's key (0: it does not), None if it is gone.
    """
    for epoch in between:
        if epoch is None:
            return "gap"
        if epoch >= block.epoch and Rule.GATE_FENCE in rules:
            return "fenced"
    return ""


def needs_note(rules: Collection[Enum], gate: Gate, block: Block) -> bool:
    """Tell whether the gate has to put a note before it sends the commit."""
    return Rule.CREATION_NOTE in rules and block.creates and not gate.noted


# -- what becomes of the gate ------------------------------------------------------------------------------------------


def is_remembered(code: str, operation: str) -> bool:
    """Tell whether the block's write is not whole without a refused statement: without maintenance it is."""
    return code != "operation" or operation in CHANGE_ROWS


def refused(gate: Gate, code: str, operation: str = "") -> Gate:
    """Refuse a commit: the first reason stays, and some refuse all that comes."""
    if not is_remembered(code, operation):
        return gate
    return gate._replace(refused=gate.refused or code, shut=gate.shut or code in _SHUTTING)


def sent(rules: Collection[Enum], gate: Gate, version: int) -> Gate:
    """Let a commit pass."""
    journal = Rule.JOURNAL_FIRST in rules or gate.journal
    return gate._replace(passed=True, status="in flight", version=version, journal=journal)


def landed(gate: Gate, version: int) -> Gate:
    """The slot is ours."""
    return gate._replace(status="landed", version=version, journal=True)


def lost(gate: Gate) -> Gate:
    """The slot is somebody else's."""
    return gate._replace(status="none", journal=True)


def fence(rules: Collection[Enum], block: Block, winner: int | None) -> str:
    """Return why a lost commit may not be rebased, by what the winner bears; None: it is gone again."""
    return "fenced" if Rule.GATE_SLOT in rules and winner is not None and winner >= block.epoch else ""


def unknown(rules: Collection[Enum], gate: Gate) -> Gate:
    """Nobody knows whether the commit has landed."""
    if Rule.DOUBT_IS_NOT_NOTHING in rules:
        return gate._replace(status="unknown", shut=True, journal=True)
    return gate._replace(status="none", passed=False, journal=True)
