"""The state of the world of turns: one lock's record, its processes, and their writes to one table.

The record is the code's own, without values that only grow: wall clocks, and the size of tickets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.coordination.record import Record

__all__ = ["Proc", "Request", "State", "Watch", "Write", "older", "plain"]


class _Jobs(dict[str, Any]):
    """A hashable mapping."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class Request(NamedTuple):
    """A change of the record that was sent. `fits`: the record has not changed since the sender read it."""

    kind: str  # ask, grant; forget, note, renew, release; answer: to a renewal that has landed
    record: Record
    fits: bool = True
    age: int = 0


class Watch(NamedTuple):
    """What a waiter has seen unchanged, and for how many ticks."""

    seen: Any = None
    age: int = 0


class Proc(NamedTuple):
    """A process of a job. `sure`: ticks since it sent the request from which its lease counts."""

    at: str = "poll"
    attempt: int = 0
    request: Request | None = None
    read: Request | None = None
    """A read in progress, with the record as the server read it."""
    holder: Watch = Watch()
    waiter: Watch = Watch()
    sure: int = 0
    token: int = 0
    todo: tuple[str, ...] = ()
    settled: bool = False
    renewals: int = 0
    undecided: bool = False


class Write(NamedTuple):
    """A guarded write, named by the nonce of its lease. `sent`: its commit is in the air."""

    nonce: str
    token: int
    sent: bool = False
    landed: bool = False
    fenced: bool = False


class State(NamedTuple):
    """The whole state. `granted`: the highest token so far. `begun`: that of the last turn that has settled. `done`:
    the jobs whose turns were completed, in order.
    """

    record: Record
    procs: tuple[Proc, ...]
    writes: tuple[Write, ...] = ()
    air: tuple[Request, ...] = ()
    faults: int = 0
    granted: int = 0
    begun: int = 0
    done: tuple[str, ...] = ()
    forced: bool = False
    broken: str = ""

    def proc(self, who: int, **changes: object) -> State:
        """Return the state with one process changed."""
        changed = self.procs[who]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(procs=(*self.procs[:who], changed, *self.procs[who + 1 :]))

    def write(self, nonce: str) -> Write:
        """Return the write of a lease."""
        return next(write for write in self.writes if write.nonce == nonce)

    def written(self, nonce: str, **changes: object) -> State:
        """Return the state with one write changed."""
        writes = tuple(w._replace(**changes) if w.nonce == nonce else w for w in self.writes)  # type: ignore[arg-type]
        return self._replace(writes=writes)

    def recorded(self, record: Record) -> State:
        """Return the state with another record: requests based on the old one no longer fit."""
        procs = tuple(proc._replace(request=_stale(proc.request), read=_stale(proc.read)) for proc in self.procs)
        air = tuple(stale for request in self.air if (stale := _stale(request)) is not None)
        return self._replace(record=record, procs=procs, air=air)

    def spend(self) -> State:
        """Return the state with one fault less to come."""
        return self._replace(faults=self.faults - 1)


def _stale(request: Request | None) -> Request | None:
    return None if request is None else request._replace(fits=False)


def older(state: State, lease: int) -> State:
    """Return the state a tick later. Ages are capped at the lease, those of watches 3 ticks later for slow reads."""
    return state._replace(procs=tuple(_aged(proc, lease) for proc in state.procs))


def _aged(proc: Proc, lease: int) -> Proc:
    def watch(one: Watch) -> Watch:
        return one if one.seen is None else one._replace(age=min(one.age + 1, lease + 3))

    def request(one: Request | None) -> Request | None:
        return None if one is None else one._replace(age=min(one.age + 1, lease))

    return proc._replace(
        sure=min(proc.sure + 1, lease) if proc.token else 0,
        holder=watch(proc.holder),
        waiter=watch(proc.waiter),
        request=request(proc.request),
        read=request(proc.read),
    )


def plain(record: Record) -> Record:
    """Return a hashable record without wall clocks."""
    holder = None if record.holder is None else replace(record.holder, since_ms=0)
    return replace(
        record,
        holder=holder,
        queue=tuple(replace(waiter, since_ms=0) for waiter in record.queue),
        jobs=_Jobs(_known(record.jobs)),
        history=tuple(replace(past, since_ms=0, until_ms=0) for past in record.history),
    )


def _known(jobs: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(jobs.items()))
