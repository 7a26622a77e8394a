"""The protocol as a system to explore: the next steps of each process, and the promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tests.model import block, claiming, gate, invariants, settling, surroundings, sweeping
from tests.model.requests import can_ever_fit
from tests.model.setting import OPERATOR, SUPERVISOR, WATCHDOG, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["Model"]


def _exit(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    yield "ends the process", surroundings.kill_child(state)


def _unsettled(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    closed = state.gate(who, shut=True, closed=True)
    yield (
        "answers: failed, the document stays open",
        closed.proc(who, at="done", answer="failure", held=None, before=-1),
    )


STEPS: dict[str, Callable[[Setting, State, int], Iterator[tuple[str, State]]]] = {
    "mark": claiming.mark,
    "claim": claiming.put_claim,
    "skip": claiming.put_skip,
    "read": claiming.read,
    "unmark": claiming.settle_failed,
    "wait": block.wait,
    "data": gate.data,
    "pass": gate.try_to_pass,
    "note": gate.note,
    "put": gate.put,
    "after": block.after,
    "success": block.success,
    "put success": block.put_success,
    "look": block.look,
    "tidy": block.tidy,
    "failed": block.failed,
    "unanswered": block.unanswered,
    "ended": block.ended,
    "unsettled": _unsettled,
    "exit": _exit,
    "judge": surroundings.judge,
    "answer": surroundings.answer,
    "tell": surroundings.tell,
    "door": sweeping.take_away,
    **dict.fromkeys(settling.STEPS, settling.steps),
}
_IDLE: dict[int, Callable[[Setting, State, int], Iterator[tuple[str, State]]]] = {
    WATCHDOG: block.watch,
    SUPERVISOR: surroundings.supervise,
    OPERATOR: sweeping.sweep,
}
_NOBODY = ("off", "done", "dead")


@dataclass(frozen=True)
class Model:
    """The protocol in one setting."""

    setting: Setting
    table_steps: ClassVar[dict[str, Any]] = STEPS
    _retries: dict[object, str | None] = field(default_factory=dict, repr=False)

    @property
    def start(self) -> State:
        return self.setting.start()

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        """Return every possible next step."""
        if state.broken:
            return
        for who, proc in enumerate(state.procs):
            if proc.at not in _NOBODY:
                for what, after in self.steps(state, who):
                    yield f"{name_of(who)}: {what}", self._settled(after)
        for what, after in self.events(state):
            yield what, self._settled(after)

    def events(self, state: State) -> Iterator[tuple[str, State]]:
        """Return the events that no process causes."""
        yield from surroundings.events(self.setting, state)
        yield from surroundings.others(self.setting, state)

    def steps(self, state: State, who: int) -> Iterator[tuple[str, State]]:
        """Return the steps that one process may take next."""
        at = state.procs[who].at
        step = _IDLE[who] if at == "idle" else self.table_steps[at]
        return step(self.setting, state, who)

    def _settled(self, state: State) -> State:
        """Drop requests that can never land: states that differ only in these are one state."""
        if not state.air:
            return state
        air = tuple(request for request in state.air if can_ever_fit(self.setting, state, request))
        return state if air == state.air else state._replace(air=air)

    def violation(self, state: State, *, final: bool) -> str | None:
        """Return the promise that a state breaks, or None."""
        return (
            state.broken
            or self.untrue(state)
            or invariants.violation(self.setting, state, final=final)
            or invariants.stuck(self, state, self._retries)
        )

    def untrue(self, state: State) -> str | None:
        """Return the promise about the table that a state breaks, or None."""
        return invariants.untrue(state)
