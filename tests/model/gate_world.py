"""Plays a history of blocks and commits on the model's gate. After each step it records what the Java driver
(`tests/logstore/java`) must report: requests, the outcome, and each gate's state.

The decisions are those of `passing.py`, as in the search. This module adds bytes, failing requests, and names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn

from tests.model import passing
from tests.model.gate_actions import Actions, announced, marked, note_of, told_refused
from tests.model.gate_stores import BrokenError, DeniedError, NoAnswerError, Stores
from tests.model.passing import Block, Commit, Machine, Statement
from tests.model.rules import Rule
from tests.model.state import Gate

__all__ = ["FUTURE", "PAST", "World", "path_of"]

PAST: Final = 1
FUTURE: Final = 4_102_444_800_000
_RULES: Final = frozenset(Rule)


class _RefusedError(Exception):
    """The gate refuses a commit."""


@dataclass
class _Open:
    """A block with its gate and journal."""

    block: Block
    key: str
    nonce: str
    late: bool
    note: str
    journal: Literal["", "there", "missing"]
    gate: Gate = field(default_factory=Gate)
    tries: int = 0
    stray: str = ""
    seen_up_to: int = -1
    lines: str = ""


@dataclass(repr=False)
class World:
    """One JVM and its stores. Each method plays a step, and records it with the state after it."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)
    blocks: dict[str, _Open] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    sessions: set[str] = field(default_factory=set)
    stores: Stores = field(init=False)
    ends: Counter[str] = field(default_factory=Counter)
    _passing: str = ""

    def __post_init__(self) -> None:
        self.stores = Stores(self._meanwhile)

    def __repr__(self) -> str:
        return "\n".join(["a history of", *(str(step) for step in self.steps)])

    # -- steps ---------------------------------------------------------------------------------------------------------

    def open(
        self, name: str, block: Block, *, key: str, latest: int, journal: Any, spelled: str, skipped: bool = False
    ) -> None:
        note = f"s3a://checkpoints/notes/{key}/{block.epoch}"
        nonce = f"nonce-{name}"
        step = {
            "do": "open",
            "block": name,
            **block._asdict(),
            "table": spelled,
            "ran_before": sorted(block.ran_before),
        }
        step |= {"key": key, "latest": latest, "note": note, "journal": journal, "nonce": nonce, "skipped": skipped}
        self.sessions.add(str(block.session))
        busy = self.machine.is_busy(block.session)
        if not busy:
            self.machine = passing.opened(self.machine, block)
            self.blocks[name] = _Open(
                block, key, nonce, latest == PAST, note, journal, Gate(shut=skipped), seen_up_to=block.claimed_at
            )
        self._saw(step, "busy" if busy else "done")

    def close(self, name: str, running: frozenset[int]) -> None:
        self._take({"do": "close", "block": name, "running": sorted(running)})

    def shut(self, name: str) -> None:
        self._take({"do": "shut", "block": name})

    def _take(self, step: dict[str, Any]) -> None:
        self._meanwhile(step)
        self._saw(step, "done")

    def land(self, path: str, actions: Actions) -> None:
        self.stores.write(path, actions.body(), dict(actions.transactions))
        self._saw({"do": "land", "path": path, "body": self.stores.bodies[path]}, "done")

    def drop(self, path: str) -> None:
        del self.stores.bodies[path]
        self._saw({"do": "drop", "path": path}, "done")

    def commit(
        self, table: str, statement: Statement, target: int, actions: Actions, plan: dict[str, dict[str, Any]]
    ) -> None:
        """Commit. `plan` has the faults by path: `fault`, `first` (Actions), `meanwhile` (a step)."""
        path = path_of(table, target)
        said = {at: {**order, **_text(order.get("first"))} for at, order in plan.items()}
        step: dict[str, Any] = {"do": "commit", "path": path, "body": actions.body(), "plan": said}
        step |= {**statement._asdict(), "table": table, "target": target}
        if statement.session is not None:
            self.sessions.add(str(statement.session))
        self.stores.begin(plan)
        self._passing = ""
        try:
            outcome = self._commit(table, statement, target, actions)
        except _RefusedError as refused:
            outcome = f"refused: {refused}"
        except (NoAnswerError, DeniedError):
            outcome = "failed"
        except BrokenError:
            outcome = "broken"
        self._saw(step, outcome, calls=self.stores.calls, gate=self._passing)

    def ended(self) -> None:
        """Record all bodies and journals at the end."""
        there = [name for name, one in self.blocks.items() if one.journal == "there"]
        self.seen.append(
            {
                "bodies": dict(sorted(self.stores.bodies.items())),
                "journals": {name: self.blocks[name].lines for name in there},
            }
        )

    def head(self, table: str) -> int:
        """Return the newest version of a table, -1 if there is none."""
        return max((int(path[-25:-5]) for path in self.stores.bodies if path.startswith(f"{_s3a(table)}/")), default=-1)

    # -- a commit ------------------------------------------------------------------------------------------------------

    def _commit(self, table: str, statement: Statement, target: int, actions: Actions) -> str:
        commit = Commit(target, actions.operation, actions.prefixes, actions.changes_table, actions.does_more)
        found = passing.find(_RULES, self.machine, table, statement, commit)
        for block in found.strays:
            self._of(block).stray = table
        for block, code in found.told:
            self._tell(self._of(block), code)
        self.ends["a stray"] += bool(found.strays)
        self.ends["two blocks told"] += len(found.told) > 1
        if found.code:
            if found.code == "over":
                assert found.over is not None
                one = self._of(found.over)
                one.lines += told_refused(one.nonce, "over")
                self.ends[f"over by its {'file' if found.over.prefix in actions.prefixes else 'execution'}"] += 1
            raise _RefusedError(found.code)
        path, own = path_of(table, target), actions.with_only(passing.unmarked(actions.transactions))
        epochs = dict(own.transactions)
        self.ends[f"a mark taken out, {'a block' if found.block else 'no block'}'s"] += own != actions
        if found.block is None:
            won = self._put(path, own.body(), epochs)
            self.ends["of no block: done" if won else "of no block: taken"] += 1
            return "done" if won else "taken"
        one = self._of(found.block)
        self._passing = next(name for name, other in self.blocks.items() if other is one)
        before = one.gate
        self._pass(one, table, commit, own)
        if self._send(one, path, own, before):
            self.ends["landed when it was shut"] += one.gate.shut
            one.gate = passing.landed(one.gate, target)
            return "done"
        one.gate = passing.lost(one.gate)
        winner = self.stores.read(path, one.key)
        self.ends["a winner that is gone"] += winner is None
        if code := passing.fence(_RULES, one.block, winner):
            self._refuse(one, code, "by its slot")
        if winner is not None:
            one.seen_up_to = target
        return "taken"

    def _send(self, one: _Open, path: str, own: Actions, before: Gate) -> bool:
        body, epochs = marked(own.body(), one.key, one.block.epoch), dict(own.transactions)
        try:
            return self._put(path, body, {**epochs, one.key: one.block.epoch})
        except DeniedError:
            one.gate = passing.lost(one.gate)._replace(passed=before.passed)
            self._refuse(one, "denied")
        except NoAnswerError:
            one.gate = passing.unknown(_RULES, one.gate)
            raise

    def _pass(self, one: _Open, table: str, commit: Commit, actions: Actions) -> None:
        self._check(one, commit)
        for between in range(one.seen_up_to + 1, commit.target):
            if code := passing.look(_RULES, one.block, [self.stores.read(path_of(table, between), one.key)]):
                self._refuse(one, code, "behind the claim")
            one.seen_up_to = between
        if passing.needs_note(_RULES, one.gate, one.block):
            if not self._put(one.note, note_of(actions.creation, one.nonce), {}):
                self._refuse(one, "fenced", "by the note")
            one.gate = one.gate._replace(noted=True)
        self._check(one, commit)
        if one.journal == "missing":
            self.ends["the journal is gone"] += 1
            raise NoAnswerError
        one.lines += announced(one.nonce)
        one.tries += 1
        self.ends["a second try"] += one.tries > 1
        one.gate = passing.sent(_RULES, one.gate, commit.target)

    def _check(self, one: _Open, commit: Commit) -> None:
        if code := passing.check(_RULES, one.gate, one.block, commit, late=one.late):
            self._refuse(one, code, operation=commit.operation)

    def _refuse(self, one: _Open, code: str, how: str = "", operation: str = "") -> NoReturn:
        self.ends[f"{code} {how}"] += 1
        self.ends["refused again for another reason"] += one.gate.refused not in ("", code)
        self._tell(one, code, operation)
        raise _RefusedError(code)

    def _tell(self, one: _Open, code: str, operation: str = "") -> None:
        """Record a refusal in the gate and its journal, except that of maintenance, which leaves no row out."""
        one.gate = passing.refused(one.gate, code, operation)
        if passing.is_remembered(code, operation):
            one.lines += told_refused(one.nonce, code)
            self.ends["a refusal in a journal"] += one.journal == "there"

    def _put(self, path: str, body: str, epochs: dict[str, int]) -> bool:
        one = self.blocks.get(self._passing)
        told = f"{one.gate.status}, announced {one.tries if one.journal == 'there' else 0}" if one is not None else ""
        return self.stores.put(path, body, epochs, told)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _meanwhile(self, step: dict[str, Any]) -> None:
        one = self.blocks[step["block"]]
        one.gate = one.gate._replace(shut=True)
        if step["do"] == "close":
            one.gate = one.gate._replace(closed=True)
            self.machine = passing.closed(self.machine, one.block, frozenset(step["running"]))

    def _of(self, block: Block) -> _Open:
        return next(one for one in self.blocks.values() if one.block is block)

    def _saw(self, step: dict[str, Any], outcome: str, **more: object) -> None:
        self.steps.append(step)
        self.ends[outcome] += 1
        self.ends.update({one.gate.status for one in self.blocks.values()})
        busy = sorted(session for session in self.sessions if self.machine.is_busy(session))
        known = {name: _told(one) for name, one in self.blocks.items()}
        self.seen.append({"outcome": outcome, **more, "blocks": known, "busy": busy})


def path_of(table: str, version: int) -> str:
    """Return the path of a table's version."""
    return f"{_s3a(table)}/_delta_log/{version:020d}.json"


def _s3a(table: str) -> str:
    return table.replace("s3://", "s3a://")


def _told(one: _Open) -> dict[str, object]:
    gate = one.gate
    return {
        "status": gate.status,
        "passed": gate.passed,
        "tries": one.tries,
        "version": gate.version,
        "refusal": gate.refused,
        "stray": one.stray,
        "noted": gate.noted,
    }


def _text(actions: Actions | None) -> dict[str, str]:
    return {} if actions is None else {"first": actions.body()}
