"""A fault of a real write: at one of its requests, or at a random moment."""

from __future__ import annotations

import signal
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Literal, get_args

from soal.testing.s3.rules import Delay, Kill, Match, Refuse, Rule
from tests.lab.experiment.ground import DEADLINE_MS
from tests.support.network_faults import Late, LoseReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.testing.s3.exchange import Reply, Request
    from soal.testing.s3.rules import Effect
    from soal.testing.s3.wire import Wire
    from tests.lab.processes import JobProcess

__all__ = ["KINDS", "PHASES", "AtMoment", "AtRequest", "Deadline", "Fault", "Kind", "Phase"]

Phase = Literal["before", "torn", "after", "late", "lost", "frozen"]
"""What happens to the request: the writer is killed before it, in its body, or after it was applied; it is applied only
after the recovery; its answer is lost, and the writer lives; the writer is stopped, and continues after the retry.
"""
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
Kind = Literal["kill", "stop", "memory", "error", "drop", "slow"]
"""What happens at a moment: SIGKILL; SIGSTOP, and the writer continues after the retry; the kernel runs out of memory
and kills Java, and the Python driver lives; the next requests get a 500 or 503, lose their answer with the connection,
or are slow.
"""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_NEXT: Final = 3
"""How many requests an outage hits: fewer than a client's attempts."""
_SLOW_MS: Final = 700


class Fault(ABC):
    """One fault of one write. `at_ns`: when it happened, on the monotonic clock; None: not yet."""

    freezes = False
    """Whether the writer is stopped, and continues after the retry."""
    deadline_ms = DEADLINE_MS
    """The writer's timeout from its start."""

    def __init__(self) -> None:
        self.at_ns: int | None = None
        self.operation: str | None = None
        self.key_class: str | None = None

    @property
    def is_hit(self) -> bool:
        """Whether the fault has happened."""
        return self.at_ns is not None

    @abstractmethod
    def plant(self, wire: Wire, victim: JobProcess) -> None:
        """Install the fault."""

    def release(self) -> None:  # noqa: B027 - most hold nothing
        """Apply the late requests."""

    def end(self) -> None:  # noqa: B027 - as above
        """Remove the fault."""

    def _noted(self, effect: Effect) -> Effect:
        def act(request: Request) -> Reply | Callable[[], Reply]:
            self.operation, self.key_class = request.operation, request.key_class
            return effect(request)

        return act


class AtRequest(Fault):
    """Hits the `nth` mutating request of a write."""

    def __init__(self, phase: Phase, nth: int) -> None:
        super().__init__()
        self.freezes = phase == "frozen"
        self._phase: Phase = phase
        self._nth = nth
        self._late: Late | None = None
        self._rule: Rule | None = None

    @property
    def is_hit(self) -> bool:
        """Whether the request was sent."""
        return self._rule is not None and self._rule.fired(timeout_s=0)

    def plant(self, wire: Wire, victim: JobProcess) -> None:
        """Hit the request when it is sent."""
        number = signal.SIGSTOP if self.freezes else signal.SIGKILL
        self._late = Late(then="waits" if self.freezes else "dropped", end=lambda: victim.signal(number))
        self._rule = wire.add(Rule(Match(is_mutating=True), self._noted(self._effect(victim, self._late)), self._nth))

    def release(self) -> None:
        """Apply the request, if it is late."""
        if self._late is not None:
            self._late.release()

    def _effect(self, victim: JobProcess, late: Late) -> Effect:
        def act(request: Request) -> Reply | Callable[[], Reply]:
            self.at_ns = time.monotonic_ns()
            return effect(request)

        phase = self._phase
        if phase == "late" or phase == "frozen":  # noqa: PLR1714 - the type checker follows only this form
            effect: Effect = late
        else:
            effect = LoseReply(503) if phase == "lost" else Kill(phase, victim.signal)
        return act


class AtMoment(Fault):
    """Happens `delay_ms` after the first request of the class `anchor` has arrived."""

    def __init__(self, kind: Kind, anchor: str, delay_ms: float, status: int = 503) -> None:
        super().__init__()
        self.freezes = kind == "stop"
        self._kind: Kind = kind
        self._anchor = anchor
        self._delay_ms = delay_ms
        self._status = status
        self._timer: threading.Timer | None = None

    def plant(self, wire: Wire, victim: JobProcess) -> None:
        """Wait for the anchor, then for the delay."""

        def come() -> None:
            self.at_ns = time.monotonic_ns()
            if self._kind == "kill" or self._kind == "stop":  # noqa: PLR1714 - the type checker follows only this form
                victim.signal(signal.SIGSTOP if self.freezes else signal.SIGKILL)
                return
            if self._kind == "memory":
                victim.end_java()
                return
            outages: dict[Kind, Effect] = {
                "error": Refuse(self._status),
                "drop": LoseReply(None),
                "slow": Delay(_SLOW_MS),
            }
            wire.add(Rule(Match(), outages[self._kind], times=_NEXT))

        def pass_on(request: Request) -> Reply:
            self._timer = threading.Timer(self._delay_ms / 1000, come)
            self._timer.daemon = True
            self._timer.start()
            return request.apply()

        wire.add(Rule(Match(is_mutating=True, key_class=self._anchor), self._noted(pass_on)))

    def end(self) -> None:
        """Remove the fault."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


class Deadline(Fault):
    """The writer has less time than it needs, or hardly enough."""

    def __init__(self, deadline_ms: int) -> None:
        super().__init__()
        self.deadline_ms = deadline_ms

    def plant(self, wire: Wire, victim: JobProcess) -> None:
        """The writer got its deadline at its start."""
        self.at_ns = time.monotonic_ns()
