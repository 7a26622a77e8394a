"""The gate's decisions as pure functions, for the search (`gate.py`) and for the comparison with `Gate.java` and
`Blocks.java` on generated histories (`gate_world.py`, `test_gate_as_built.py`).

A check without a rule cannot be switched off; in the search it never refuses.
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
"""Operations that no block may hold, although they change rows."""
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
    """What the gate must know of a commit. `prefixes`: of the blocks, open or closed, whose new files it adds.
    `changes_table`: it changes schema or properties. `more`: it removes files, or has the script's own transaction.
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
    """The origin of a commit. `executions`: Spark's ids, innermost first."""

    thread: object
    session: object
    executions: tuple[int, ...] = ()


class Block(NamedTuple):
    """The parameters of a block. `undoable`: the gate refuses what no undo could take back. `ran_before`: executions
    that ran at its opening.
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
        """Whether there was no table before the block."""
        return self.claimed_at < 0


class Machine(NamedTuple):
    """The blocks of one JVM. `left`: executions that outlived a block, of the latest block first."""

    open: tuple[Block, ...] = ()
    ended: tuple[Block, ...] = ()
    left: tuple[tuple[int, Block], ...] = ()

    def is_busy(self, session: object) -> bool:
        """Return whether a block is open on a session."""
        return any(block.session == session for block in self.open)


class Found(NamedTuple):
    """The result of `find`. `code`: why the commit is refused. `told`: the open blocks that record the refusal. `over`:
    the closed block whose journal records it. `strays`: blocks whose own statement wrote another table.
    """

    block: Block | None = None
    code: str = ""
    told: tuple[tuple[Block, str], ...] = ()
    over: Block | None = None
    strays: tuple[Block, ...] = ()


# -- which block a commit belongs to -----------------------------------------------------------------------------------


def opened(machine: Machine, block: Block) -> Machine:
    """Open a block."""
    return machine._replace(open=(*machine.open, block))


def closed(machine: Machine, block: Block, running: AbstractSet[int]) -> Machine:
    """Close a block; `running`: the executions that still run."""
    outliving = tuple((number, block) for number in sorted(running - block.ran_before))
    return Machine(
        tuple(other for other in machine.open if other is not block),
        (*machine.ended, block),
        (*outliving, *(one for one in machine.left if one[0] in running)),
    )


def find(rules: Collection[Enum], machine: Machine, table: object, statement: Statement, commit: Commit) -> Found:
    """Return the block that a commit belongs to, or why it is refused."""
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
    """Return the closed block whose statement makes the commit, or None."""
    outlived = (
        block
        for number in statement.executions
        for left, block in machine.left
        if (left, block.table) == (number, table)
    )
    named = (block for block in machine.ended if block.table == table and block.prefix in commit.prefixes)
    found = next(outlived, None) if commit.writes_rows else None
    return found or (None if commit.operation in BRING_BACK else next(named, None))


# -- which transactions are sent ---------------------------------------------------------------------------------------


def unmarked(transactions: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return a commit's transactions without those of blocks: only the block's own gate adds one."""
    return tuple(one for one in transactions if not _KEY.fullmatch(one[0]))


# -- whether a commit of a block passes --------------------------------------------------------------------------------


def check(rules: Collection[Enum], gate: Gate, block: Block, commit: Commit, *, late: bool) -> str:
    """Return why a block's commit is refused without reading the table; empty if it is not."""
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
    """Return why the versions between claim and slot refuse a block's commit; empty if they do not. `between`: of each
    the epoch under the block's key (0: no such key), None if it is gone.
    """
    for epoch in between:
        if epoch is None:
            return "gap"
        if epoch >= block.epoch and Rule.GATE_FENCE in rules:
            return "fenced"
    return ""


def needs_note(rules: Collection[Enum], gate: Gate, block: Block) -> bool:
    """Return whether the gate has to put a note before it sends the commit."""
    return Rule.CREATION_NOTE in rules and block.creates and not gate.noted


# -- changes of the gate -----------------------------------------------------------------------------------------------


def is_remembered(code: str, operation: str) -> bool:
    """Return whether a refused statement leaves rows out of the block; refused maintenance does not."""
    return code != "operation" or operation in CHANGE_ROWS


def refused(gate: Gate, code: str, operation: str = "") -> Gate:
    """Record a refusal: the first code stays, and some codes shut the gate."""
    if not is_remembered(code, operation):
        return gate
    return gate._replace(refused=gate.refused or code, shut=gate.shut or code in _SHUTTING)


def sent(rules: Collection[Enum], gate: Gate, version: int) -> Gate:
    """Record that a commit passes and is sent."""
    journal = Rule.JOURNAL_FIRST in rules or gate.journal
    return gate._replace(passed=True, status="in flight", version=version, journal=journal)


def landed(gate: Gate, version: int) -> Gate:
    """Record that the commit won its slot."""
    return gate._replace(status="landed", version=version, journal=True)


def lost(gate: Gate) -> Gate:
    """Record that another commit won the slot."""
    return gate._replace(status="none", journal=True)


def fence(rules: Collection[Enum], block: Block, winner: int | None) -> str:
    """Return why a lost commit may not be rebased; `winner`: its epoch under the block's key, None if it is gone."""
    return "fenced" if Rule.GATE_SLOT in rules and winner is not None and winner >= block.epoch else ""


def unknown(rules: Collection[Enum], gate: Gate) -> Gate:
    """Record that the commit's outcome is unknown."""
    if Rule.DOUBT_IS_NOT_NOTHING in rules:
        return gate._replace(status="unknown", shut=True, journal=True)
    return gate._replace(status="none", passed=False, journal=True)
