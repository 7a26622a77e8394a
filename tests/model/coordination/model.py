"""The moves of all processes and of their surroundings, and the promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.coordination.order import obstacle
from safewriter.coordination.record import End, Record
from safewriter.coordination.transitions import end, join
from tests.model.coordination.asking import asking, nonce_of
from tests.model.coordination.holding import HOLDS, holding, is_sure
from tests.model.coordination.landing import landed
from tests.model.coordination.reducing import reduced
from tests.model.coordination.rules import Fault, TurnRule
from tests.model.coordination.state import Proc, State, older, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.coordination.setting import Setting

__all__ = ["TurnModel"]

_ENDED = ("over", "dead")


@dataclass(frozen=True)
class TurnModel:
    """A setting as a system to explore."""

    setting: Setting

    @property
    def start(self) -> State:
        procs = tuple(Proc() for _ in self.setting.jobs)
        state = State(Record("lock"), procs, faults=self.setting.faults)
        if self.setting.queued:
            for who, configuration in enumerate(self.setting.jobs):
                joined = join(state.record, configuration, nonce_of(self.setting, state, who), 0)
                state = state._replace(record=joined)
        return state._replace(record=plain(state.record))

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        """Return every possible next step."""
        for what, after in self._moves(state):
            yield what, reduced(self.setting, after)

    def _moves(self, state: State) -> Iterator[tuple[str, State]]:
        if all(proc.at in _ENDED for proc in state.procs) and not any(write.sent for write in state.writes):
            return
        for who, proc in enumerate(state.procs):
            if proc.at in _ENDED:
                continue
            name = nonce_of(self.setting, state, who)
            steps = holding if proc.at in HOLDS else asking
            for what, after in steps(self.setting, state, who):
                yield f"{name} {what}", after
            if self.setting.may(state, Fault.KILL):
                yield f"{name} is killed", _killed(state, who)
        yield from self._surroundings(state)

    def _surroundings(self, state: State) -> Iterator[tuple[str, State]]:
        for request in state.air:
            rest = state._replace(air=tuple(one for one in state.air if one is not request))
            if request.fits or not self.setting.has(TurnRule.RECORD_CAS):
                yield f"a late request lands ({request.kind})", landed(self.setting, rest, request.record)
        for write in state.writes:
            if write.sent and not write.landed:
                yield f"the commit of {write.nonce} arrives", _arrived(state, write.nonce)
        if state.record.holder is not None and self.setting.may(state, Fault.FORCE):
            forced = landed(self.setting, state, plain(end(state.record, End.FORCED, 0)))
            yield "an operator releases the lock", forced._replace(forced=True).spend()
        if self.setting.time and all(proc.read is None or proc.read.age < 2 for proc in state.procs):
            yield "time passes", older(state, self.setting.lease)

    def violation(self, state: State, *, final: bool) -> str | None:
        """Return the promise that a state breaks, or None."""
        if state.broken:
            return state.broken
        if state.record.token < state.granted:
            return "a token does not grow"
        if not self._counts(state):
            return "a completed turn is lost, or counted twice"
        if self.setting.clocks and not state.forced:
            for who, proc in enumerate(state.procs):
                mine = nonce_of(self.setting, state, who)
                if proc.at in HOLDS and is_sure(self.setting, state, who) and not _has(state, who, mine):
                    return "a holder is sure of its turn, and another has it"
        return None

    def _counts(self, state: State) -> bool:
        if not self.setting.has(TurnRule.COMPLETES_LATE):
            return True
        last = {name: number for number, name in enumerate(state.done, 1)}
        told = {name: job.completed for name, job in state.record.jobs.items() if job.completed}
        return state.record.completions == len(state.done) and told == last

    def is_good(self, state: State) -> bool:
        """Return whether all processes have ended, except perhaps one that waits for a job that runs no more."""
        alive = [who for who, proc in enumerate(state.procs) if proc.at not in _ENDED]
        return len(alive) < 2 and all(self._waits_for_nobody(state, who) for who in alive)

    def _waits_for_nobody(self, state: State, who: int) -> bool:
        if state.procs[who].at != "poll":
            return False
        configuration = self.setting.jobs[who]
        wanted = state.record.ordered(configuration)
        return obstacle(state.record, configuration.job, wanted) is not None


def _has(state: State, who: int, nonce: str) -> bool:
    """Return whether the record shows the process's lease, or that its turn ended other than by expiry."""
    ended = any(past.token == state.procs[who].token and past.end is not End.EXPIRED for past in state.record.history)
    return state.record.is_held_by(nonce) or ended


def _killed(state: State, who: int) -> State:
    proc = state.procs[who]
    request = proc.request
    air = state.air if request is None or not request.fits else (*state.air, request)
    dead = Proc("dead", proc.attempt)
    return state._replace(procs=(*state.procs[:who], dead, *state.procs[who + 1 :]), air=air, faults=state.faults - 1)


def _arrived(state: State, nonce: str) -> State:
    """Let a commit arrive at the table, which refuses it after a fence."""
    write = state.write(nonce)
    if write.fenced:
        return state.written(nonce, sent=False)
    # A commit of an earlier turn lands in a later one.
    broken = "two holders can commit" if write.token < state.begun else ""
    return state.written(nonce, sent=False, landed=True)._replace(broken=state.broken or broken)
