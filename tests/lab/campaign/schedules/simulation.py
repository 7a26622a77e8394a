"""A virtual clock, and simulated processes whose threads run one at a time: what happens depends on the seed alone.

Each simulated thread is a real one, so the code under test runs as it is; but only the holder of the baton runs. It
gives the baton away where it waits: for an answer, a lock, another thread, or for time to pass.
"""

from __future__ import annotations

import heapq
import threading
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EPOCH_MS", "SECOND", "Actor", "Killed", "Process", "Simulation", "current", "simulation"]

EPOCH_MS: Final = 1_800_000_000_000
"""When each simulation begins."""
SECOND: Final = 1_000_000
"""A second, in the microseconds of a simulation's clock."""
_EVENTS_MAX: Final = 200_000


class Killed(BaseException):
    """The simulated process is dead: its threads unwind, and no request of them is sent."""


class EndlessError(Exception):
    """The simulation does not end."""


@dataclass(eq=False)
class Process:
    """A simulated process. `skew_ms`: what its clock is ahead of S3's. `slow`: a factor of its requests' times.

    `faults`: by the kind of the request that is hit, and its number among the process's requests of this kind, from 0.
    `sandbox`: a process that stands still together with this one; `dies_too`: and it is killed with it.
    """

    name: str
    random: Random
    skew_ms: int = 0
    slow: float = 1.0
    faults: dict[tuple[str, int], Any] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    sandbox: Process | None = None
    dies_too: bool = False
    dead: bool = False
    frozen_until: int = 0
    actors: list[Actor] = field(default_factory=list)
    own: dict[str, Any] = field(default_factory=dict)
    """What the code under test keeps once in each process."""

    @property
    def has_ended(self) -> bool:
        """Whether it is dead, or has no thread left that it waits for."""
        return self.dead or all(actor.done or actor.daemon for actor in self.actors)


@dataclass(eq=False)
class Actor:
    """A simulated thread. `waits`: counts its waits, so that it ignores what would have ended an earlier one. `daemon`:
    its process does not wait for its end.
    """

    name: str
    process: Process
    work: Callable[[], object]
    waits: int = 0
    done: bool = False
    daemon: bool = False
    joined: list[tuple[Actor, int]] = field(default_factory=list)
    baton: Any = field(default_factory=threading.Lock)


class _Worker:
    """A real thread, which carries out one actor after the other: to start one takes longer than many actors do."""

    idle: Final[list[_Worker]] = []

    def __init__(self) -> None:
        self.baton = threading.Lock()
        self.baton.acquire()
        self.job: tuple[Simulation, Actor] | None = None
        threading.Thread(target=self._run, name="simulated", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.baton.acquire()
            assert self.job is not None
            world, actor = self.job
            world.run_actor(actor)
            self.job = None
            _Worker.idle.append(self)  # only the holder of the baton does this
            world.hand_on()


_current: Simulation | None = None


def simulation() -> Simulation:
    """Return the running simulation."""
    assert _current is not None, "no simulation runs"
    return _current


def current() -> Actor:
    """Return the actor that runs."""
    return simulation().actor


class Simulation:
    """The events of one schedule, in the order of their times; a context manager that makes it the running one."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0
        self.trace: list[str] | None = None
        self.errors: list[tuple[str, BaseException]] = []
        self._events: list[tuple[int, int, Actor | Callable[[], object], int]] = []
        self._count = 0
        self._until: int | None = None
        self._is_endless = False
        self.processes: list[Process] = []
        self.main = Actor("main", self.process("main"), lambda: None)
        self.main.baton.acquire()
        self.actor = self.main

    def __enter__(self) -> Self:
        global _current  # noqa: PLW0603 - the code under test asks for time and threads where it cannot be given any
        assert _current is None
        _current = self
        return self

    def __exit__(self, *_: object) -> None:
        global _current  # noqa: PLW0603 - as above
        for process in self.processes[1:]:
            self.kill(process)
            for actor in process.actors:  # also one that an event has killed while it looked for the next event
                if not actor.done:
                    self.wake(actor)
        self._events = [event for event in self._events if isinstance(event[2], Actor)]
        heapq.heapify(self._events)
        self.run()
        _current = None

    # -- processes and threads -----------------------------------------------------------------------------------------

    def process(self, name: str, **more: Any) -> Process:
        """Make a process, without a thread yet. What it draws depends on the seed and its name only."""
        made = Process(name, Random(f"{self.seed}/{name}"), **more)  # noqa: S311 - a seed must repeat it
        self.processes.append(made)
        return made

    def spawn(self, process: Process, work: Callable[[], object], name: str = "main", delay: int = 0) -> Actor:
        """Start a thread of a process, after a delay."""
        actor = Actor(f"{process.name}/{name}", process, work)
        process.actors.append(actor)
        self.wake(actor, delay)
        return actor

    def kill(self, process: Process) -> None:
        """End a process at once, as SIGKILL does. Requests on their way still arrive."""
        if process.dead:
            return
        process.dead, process.frozen_until = True, 0
        if process.sandbox is not None and process.dies_too:
            self.kill(process.sandbox)
        for actor in process.actors:
            if not actor.done and actor is not self.actor:
                self.wake(actor)

    def freeze(self, process: Process, duration: int) -> None:
        """Let a process stand still, as a sandbox that its host stops."""
        for one in (process, process.sandbox):
            if one is not None:
                one.frozen_until = max(one.frozen_until, self.now + duration)

    # -- time ----------------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """Return S3's time, in milliseconds since the epoch."""
        return EPOCH_MS + self.now // 1000

    def tell(self, what: str) -> None:
        """Note in the trace what the running actor does, if there is one."""
        if self.trace is not None:
            self.trace.append(f"{self.now / SECOND:.3f} {self.actor.name}: {what}")

    def wall_ms(self) -> int:
        """Return what the clock of the running process shows."""
        return self.now_ms() + self.actor.process.skew_ms

    def at(self, delay: int, act: Callable[[], object]) -> None:
        """Let something happen after a delay, by no process."""
        self._push(self.now + delay, act, 0)

    def wake(self, actor: Actor, delay: int = 0) -> None:
        """End the present wait of an actor after a delay, unless something else ends it before."""
        self._push(self.now + delay, actor, actor.waits)

    def _push(self, time: int, what: Actor | Callable[[], object], waits: int) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, what, waits))

    # -- waiting -------------------------------------------------------------------------------------------------------

    def sleep(self, duration: int) -> None:
        """Let the running actor wait."""
        self.check_alive()
        self.wake(self.actor, max(0, duration))
        self.wait()

    def wait(self) -> None:
        """Let the running actor wait until something wakes it. Raises `Killed` if its process has died."""
        me = self.actor
        self.check_alive()
        following = self._next()
        if following is not me:
            following.baton.release()
            me.baton.acquire()
        self._resumed(me)
        if me.process.dead:
            raise Killed

    def check_alive(self) -> None:
        """Raise `Killed` if the running process is dead."""
        if self.actor.process.dead:
            raise Killed

    def _resumed(self, me: Actor) -> None:
        self.actor = me
        me.waits += 1

    def join(self, other: Actor) -> None:
        """Let the running actor wait for the end of another one of its process."""
        while not other.done:
            other.joined.append((self.actor, self.actor.waits))
            self.wait()

    def run(self, until: int | None = None) -> None:
        """Let everything happen, until a time or until nothing is left. Only the main actor may call it."""
        assert self.actor is self.main
        self._until = until
        following = self._next()
        if following is not self.main:
            following.baton.release()
            self.main.baton.acquire()
        self._resumed(self.main)
        if until is not None:
            self.now = max(self.now, until)

    def _next(self) -> Actor:
        """Let events happen until one wakes an actor; return that. The main actor is woken when none is left."""
        while self._events:
            if self._count > _EVENTS_MAX and not self._is_endless:
                self._end()
            if self._until is not None and self._events[0][0] > self._until:
                break
            self.now, _, what, waits = heapq.heappop(self._events)
            if not isinstance(what, Actor):
                self._happen(what)
            elif what.waits == waits and not what.done:
                if what.process.frozen_until > self.now:
                    self._push(what.process.frozen_until, what, waits)
                    continue
                return self._prepared(what)
        return self.main

    def _happen(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - this thread is not the one to see it
            self.errors.append(("an event", error))

    def _end(self) -> None:
        self._is_endless = True
        self.errors.append(("the simulation", EndlessError(f"more than {_EVENTS_MAX:,} events")))
        for process in self.processes[1:]:
            self.kill(process)

    def _prepared(self, actor: Actor) -> Actor:
        if actor.waits == 0 and actor is not self.main:  # it has not begun
            worker = _Worker.idle.pop() if _Worker.idle else _Worker()
            worker.job, actor.baton = (self, actor), worker.baton
            actor.waits = 1
        return actor

    def run_actor(self, actor: Actor) -> None:
        """Carry out an actor; for workers."""
        self.actor = actor
        try:
            self.check_alive()
            actor.work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - the judge looks at it
            self.errors.append((actor.name, error))
        actor.done = True
        for waiting, waits in actor.joined:
            self._push(self.now, waiting, waits)

    def hand_on(self) -> None:
        """Give the baton of an actor that has ended to the next one; for workers."""
        self._next().baton.release()
