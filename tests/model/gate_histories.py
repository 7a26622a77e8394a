"""Hypothesis strategies for histories of blocks and commits in one JVM, mostly ordinary ones near the edge cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hypothesis import strategies as st

from tests.model.gate_actions import ROW_IDS, Actions
from tests.model.gate_world import FUTURE, PAST, World, path_of
from tests.model.passing import BRING_BACK, GUARDED, Block, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["HISTORIES", "histories"]

HISTORIES: Final = 1_500
"""The number of histories in a test run."""

T = TypeVar("T")
_TABLES: Final = ("s3://lake/one", "s3://lake/two")
_THREADS: Final = ("thread 0", "thread 1", "thread 2")
_SESSIONS: Final = ("session 0", "session 1", "session 2")
_KEYS: Final = (f"sw-{'a' * 32}", f"sw-{'b' * 32}")
_BLOCKS_MAX: Final = 4
_STEPS_MAX: Final = 12
_CHOICES: Final = 400
_OTHERS: Final = ("OPTIMIZE", "SET TBLPROPERTIES", "STREAMING UPDATE", "", *BRING_BACK)
_FOREIGN_PREFIX: Final = "sw-cccccccccccccccccccccccccccccccc-1-00000000000000ff-"
_EXECUTIONS: Final = (1, 2, 3, 4)


def histories() -> st.SearchStrategy[World]:
    """Return a strategy of worlds that have played a history: each knows its steps and what Java must show after each.

    One draw of many bytes, each a choice, takes a tenth of the time of many draws, and shrinks as well as these.
    """
    return st.binary(min_size=_CHOICES, max_size=_CHOICES).map(lambda choices: _Drawn(iter(choices)).history())


@dataclass
class _Drawn:
    choices: Iterator[int]
    world: World = field(default_factory=World)
    _serial: int = 0
    _open: list[str] = field(default_factory=list)

    def history(self) -> World:
        for table in _TABLES:
            for version in range(self._one((1, 2, 0))):
                self.world.land(path_of(table, version), self._foreign(table))
        self._begin()
        for _ in range(2 + self._one(range(_STEPS_MAX))):
            self._one((self._commit,) * 7 + (self._begin, self._end, self._shut, self._land, self._drop))()
        self.world.ended()
        return self.world

    def _one(self, options: Sequence[T]) -> T:
        return options[next(self.choices, 0) % len(options)]

    def _often(self, usual: T, *others: T) -> T:
        return self._one((usual,) * 3 * max(len(others), 1) + others)

    def _some(self, numbers: Sequence[int]) -> frozenset[int]:
        mask = self._one(range(1 << len(numbers)))
        return frozenset(number for place, number in enumerate(numbers) if mask >> place & 1)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        number = sum(step["do"] == "open" for step in self.world.steps)
        if number == _BLOCKS_MAX:
            return
        name, table, key = f"block {number}", self._often(*_TABLES), self._often(*_KEYS)
        skips = bool(self._often("", "skips"))
        head, epoch = self.world.head(table), self._one((1, 2, 3))
        claimed = -1 if skips else max(-1, head + self._often(0, -1, -2, 2))
        block = Block(
            table,
            self._often(_THREADS[number % 3], *_THREADS),
            self._often(_SESSIONS[number % 3], *_SESSIONS),
            f"{key}-{0 if skips else epoch}-{number:016x}-",
            1 if skips else epoch,
            claimed_at=claimed,
            undoable=not skips and bool(self._often("", "undoable")),
            ran_before=self._some(_EXECUTIONS[:2]),
        )
        latest = self._often(0, FUTURE, -1, self._often(0, PAST))
        spelled = self._one((table, f"{table}/", table.replace("s3:", "s3a:"), table.replace("s3:", "s3n:")))
        journal = "" if skips else self._often("there", "", self._often("", "missing"))
        self.world.open(name, block, key=key, latest=latest, journal=journal, spelled=spelled, skipped=skips)
        if name in self.world.blocks:
            self._open.append(name)

    def _end(self) -> None:
        if self._still_open():
            self.world.close(self._one(self._still_open()), self._some(_EXECUTIONS))

    def _shut(self) -> None:
        if self._still_open():
            self.world.shut(self._one(self._still_open()))

    def _still_open(self) -> list[str]:
        return [name for name in self._open if not self.world.blocks[name].gate.closed]

    # -- others --------------------------------------------------------------------------------------------------------

    def _land(self) -> None:
        table = self._one(_TABLES)
        self.world.land(path_of(table, self.world.head(table) + 1), self._foreign(table))

    def _drop(self) -> None:
        there = sorted(path for path in self.world.stores.bodies if "_delta_log" in path)
        if there:
            self.world.drop(self._one(there))

    def _foreign(self, table: str) -> Actions:
        """Return another writer's commit, often with a transaction: perhaps a fence of a block."""
        here = [(one.key, one.block.epoch) for one in self.world.blocks.values() if one.block.table == table]
        kind = self._often("with the key of a block", "")
        if here and kind:
            key, epoch = self._one(here)
            return self._actions(transactions=((key, epoch + self._often(0, -1, 1)),))
        return self._actions(transactions=self._one(((), (("another", 9),))))

    def _actions(self, **more: Any) -> Actions:
        self._serial += 1
        return Actions(self._serial, **more)

    # -- commits -------------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        blocks = self.world.blocks
        if not blocks:
            return
        name = self._one(self._still_open() * 3 + list(blocks))
        one = blocks[name]
        table = self._often(str(one.block.table), *_TABLES)
        statement = self._statement(one.block)
        prefix = self._often(one.block.prefix, "", _FOREIGN_PREFIX, *(other.block.prefix for other in blocks.values()))
        adds = self._one((((prefix, False),), (("", False), (prefix, False)), (), ((prefix, True),)))
        actions = self._actions(
            operation=self._often("WRITE", "DELETE", self._one(GUARDED), self._one(_OTHERS)),
            adds=adds,
            removes=bool(self._often("", "removes")),
            changes_metadata=bool(self._often("", "changes")),
            domain=self._often("", ROW_IDS, "delta.clustering"),
            transactions=self._transactions(),
        )
        target = max(0, self.world.head(table) + self._often(1, 0, 2))
        self.world.commit(table, statement, target, actions, self._plan(name, table, target))
        while self.world.seen[-1]["outcome"] == "taken" and self._often("again", ""):
            target = self.world.head(table) + self._often(1, 2)  # like Delta's rebase
            self.world.commit(table, statement, target, actions, self._plan(name, table, target))

    def _transactions(self) -> tuple[tuple[str, int], ...]:
        """Return a commit's transactions: mostly none, else a user's, or one that a skipped block has set."""
        users = self._often((), (("the user's", 1),))
        return users + self._often((), ((self._one(_KEYS), self._one((1, 2, 3))),))

    def _statement(self, block: Block) -> Statement:
        thread = self._often(block.thread, *_THREADS)
        session = self._often(block.session, *_SESSIONS, None)
        numbers = self._one(_EXECUTIONS), self._one(_EXECUTIONS)
        executions = self._one(((), numbers[:1], tuple(dict.fromkeys(numbers))))
        return Statement(thread, session, executions)

    def _plan(self, name: str, table: str, target: int) -> dict[str, dict[str, Any]]:
        """Return the faults in a commit: mostly none."""
        at = path_of(table, target)
        note = self.world.blocks[name].note
        notes = ("note",) * (3 if self.world.blocks[name].block.creates else 1)
        still = self._still_open()
        match self._one(("",) * 8 + ("taken",) * 4 + ("lost", *notes, "read", "meanwhile", "meanwhile")):
            case "taken":
                return {at: {"first": self._foreign(table), "fault": self._one(("", "", "unreadable", "gone"))}}
            case "lost":
                return {at: {"fault": self._one(("fails", "applied", "breaks", "denied", "denied"))}}
            case "note":
                taken = {"first": self._actions()}
                return {note: self._one(({"fault": "fails"}, {"fault": "applied"}, taken, taken))}
            case "read":
                return {path_of(table, self._one(range(target + 1))): {"fault": "unreadable"}}
            case "meanwhile" if still:
                step: dict[str, Any] = {"do": self._one(("shut", "close")), "block": self._one(still)}
                if step["do"] == "close":
                    step["running"] = sorted(self._some(_EXECUTIONS))
                where = (at, note, path_of(table, max(0, target - 1)))
                return {self._one(where): {"meanwhile": step}}
        return {}
