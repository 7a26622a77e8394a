"""One lock service at the beginning of a test, and the jobs that contend for its only lock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.coordination import Configuration, JobCoordinator
from safewriter.coordination.acquiring import uptime_s
from safewriter.coordination.configuration import PREFIX
from safewriter.coordination.record import Record
from tests.support.turn_player import Events
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from safewriter.coordination.backend import Backend
    from tests.support.contenders import Contender
    from tests.support.lock_services import Service

__all__ = ["LOCK", "Arena"]

LOCK: Final = "table"


@dataclass
class Arena:
    """One service at the beginning of a test, with an unused lock, and the jobs that contend for it."""

    service: Service
    folder: Path
    _contenders: list[Contender] = field(default_factory=list)

    @property
    def events(self) -> Events:
        return Events(self.folder / "events")

    def contender(
        self, job: str, *, lease_s: float = 1.0, poll_s: float = 0.05, max_wait_s: float = 120, skew_s: float = 0
    ) -> Contender:
        mapping = {
            "lock.name": LOCK,
            "name": job,
            "lease.seconds": str(lease_s),
            "poll.seconds": str(poll_s),
            "max.wait.seconds": str(max_wait_s),
        }
        named = {PREFIX + key: value for key, value in mapping.items()}
        contender = self.service.contender(named, str(self.folder / "events"), skew_s=skew_s)
        self._contenders.append(contender)
        return _Counted(contender, self)

    def coordinator(self, job: str, backend: Backend | None = None, **more: Any) -> JobCoordinator:
        """Make a job in this process, whose writes have verdicts and are settled immediately."""
        configuration = Configuration(lock=LOCK, job=job, **{"poll_s": 0.02, "max_wait_s": 20, **more})
        used = self.service.backend() if backend is None else backend
        return JobCoordinator(configuration, used, settle=lambda _, __: None, decided=lambda writes: writes)

    def bystander(self, job: str, **more: Any) -> JobCoordinator:
        """Make a job whose requests are exempt from faults."""
        return self.coordinator(job, self.service.observer(), **more)

    def record(self) -> Record:
        stored = self.service.observer().read(LOCK)
        assert stored is not None
        return stored.record

    def number(self, token: int) -> int:
        """Return the number of this turn: tokens of some services grow by more than one."""
        return 1 + len({past.token for past in self.record().history if past.token < token})

    def settle_server(self) -> None:
        """Skip the probe of the server: write a record that already lists it; tokens begin anew."""
        backend = self.service.backend()
        if backend.server:
            self.service.observer().write(Record(LOCK, servers=(backend.server,)), None)

    def until_beat(self, beat: int) -> None:
        """Wait until the holder has renewed its lease `beat` times."""
        assert until(lambda: self._beat() >= beat)

    def last_seen_before_a_renewal_s(self) -> float:
        """Wait for a renewal; return the latest time at which a poll did not see it."""
        beat = self._beat()
        before_s = uptime_s()

        def is_renewed() -> bool:
            nonlocal before_s
            asked_s = uptime_s()
            if self._beat() > beat:
                return True
            before_s = asked_s
            return False

        assert until(is_renewed)
        return before_s

    def _beat(self) -> int:
        holder = self.record().holder
        return -1 if holder is None else holder.beat

    def until_queue(self, size: int) -> None:
        """Wait until `size` jobs wait."""
        assert until(lambda: len(self.record().queue) == size)

    def pass_s(self, seconds: float) -> None:
        """Wait until `seconds` have passed on every job's clock."""
        end_s = uptime_s() + seconds
        assert until(lambda: uptime_s() > end_s)

    def end(self) -> None:
        for contender in self._contenders:
            contender.thaw()
            contender.kill()


class _Counted:
    """A contender whose answers hold the number of its turn instead of its token."""

    def __init__(self, contender: Contender, arena: Arena) -> None:
        self._arena = arena
        self._ask = contender.tell
        self.kill, self.freeze, self.thaw = contender.kill, contender.freeze, contender.thaw

    def tell(self, line: str) -> Callable[[], str]:
        answer = self._ask(line)
        return lambda: self._counted(answer())

    def ask(self, line: str) -> str:
        return self.tell(line)()

    def _counted(self, answer: str) -> str:
        verb, _, token = answer.partition(" ")
        return f"{verb} {self._arena.number(int(token))}" if verb == "locked" else answer
