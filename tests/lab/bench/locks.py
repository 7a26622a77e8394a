"""The cost of a turn: jobs on threads of this process take and release one lock, on each lock service in turn."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.lab.bench.lock_services import KAZOO, NAMES, NotHereError, Servers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.lab.bench.lock_services import Contender, LockService

__all__ = ["LockCost", "LocksCost", "measure"]


@dataclass(frozen=True, slots=True)
class LockCost:
    """Medians over the rounds, in milliseconds. `turn_ms`: a round's time divided by its turns. `lock_ms` covers single
    calls, including the wait for other contenders. `ratio`: `turn_ms` by that of kazoo's Lock in the same round.
    """

    service: str
    contenders: int
    turns: int
    turn_ms: float
    lock_ms: float
    lock_ms_max: float
    unlock_ms: float
    requests_per_turn: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class LocksCost:
    """A row for each service and number of contenders. `skipped`: the unavailable services, and why."""

    rounds: int
    poll_s: float
    rows: tuple[LockCost, ...]
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Round:
    turn_ms: float
    lock_ms: list[float]
    unlock_ms: list[float]
    requests: int | None
    turns: int


def measure(
    rounds: int = 5,
    turns: int = 32,
    contenders: Sequence[int] = (1, 16, 50),
    services: Sequence[str] = NAMES,
    poll_s: float = 0.5,
    progress: Callable[[int], None] = lambda _: None,
) -> LocksCost:
    """Run `rounds` rounds of about `turns` turns for each service and number of contenders; `progress` gets the number
    done.
    """
    found: dict[tuple[str, int], list[_Round]] = defaultdict(list)
    skipped: list[str] = []
    with Servers(poll_s) as servers:
        opened: dict[str, LockService] = {}
        for name in services:
            try:
                opened[name] = servers.open(name)
            except NotHereError as error:
                skipped.append(f"{name} is left out: {error}")
        for done in range(rounds):
            for count in contenders:
                for name, service in opened.items():
                    found[name, count].append(_round(service, f"of-{count}", count, turns, is_first=done == 0))
            progress(done + 1)
    peers = {count: found.get((KAZOO, count)) for count in contenders}
    rows = tuple(_row(name, count, taken, peers[count]) for (name, count), taken in found.items())
    return LocksCost(rounds, poll_s, rows, tuple(skipped))


def _round(service: LockService, lock: str, count: int, turns: int, *, is_first: bool) -> _Round:
    jobs = [service.contender(lock, number) for number in range(count)]
    if is_first:  # create the record, and probe each server once
        jobs[0].lock()
        jobs[0].unlock()
    each = max(1, turns // count)
    start = threading.Barrier(count + 1)
    with ThreadPoolExecutor(count) as pool, service.counting() as counted:
        played = [pool.submit(_play, job, each, start) for job in jobs]
        start.wait()
        began = time.monotonic()
        times = [one for job in played for one in job.result()]
        taken_s = time.monotonic() - began
    return _Round(
        turn_ms=taken_s * 1000 / len(times),
        lock_ms=[lock_ms for lock_ms, _ in times],
        unlock_ms=[unlock_ms for _, unlock_ms in times],
        requests=counted.requests,
        turns=len(times),
    )


def _play(job: Contender, turns: int, start: threading.Barrier) -> list[tuple[float, float]]:
    """Take the turns; return for each how long locking and unlocking took."""
    taken = []
    start.wait()
    for _ in range(turns):
        began = time.monotonic()
        job.lock()
        locked = time.monotonic()
        job.unlock()
        taken.append(((locked - began) * 1000, (time.monotonic() - locked) * 1000))
    return taken


def _row(name: str, count: int, taken: list[_Round], peer: list[_Round] | None) -> LockCost:
    requests = [one.requests / one.turns for one in taken if one.requests is not None]
    locked = [one for each in taken for one in each.lock_ms]
    pairs = [] if peer is None else list(zip(taken, peer, strict=True))
    return LockCost(
        service=name,
        contenders=count,
        turns=sum(one.turns for one in taken),
        turn_ms=statistics.median(one.turn_ms for one in taken),
        lock_ms=statistics.median(locked),
        lock_ms_max=max(locked),
        unlock_ms=statistics.median(one for each in taken for one in each.unlock_ms),
        requests_per_turn=statistics.median(requests) if requests else None,
        ratio=statistics.median(own.turn_ms / other.turn_ms for own, other in pairs) if pairs else None,
    )
