"""Acquire a turn: wait for the lock and for the order, take over from a dead holder.

A waiter compares no clocks. It takes a lock over only if it has seen the same lease without a renewal for the holder's
whole lease, by its own monotonic clock: from the end of the first request that saw it to the start of the last one.

A waiter that leaves before that writes the time that it has counted into the record. Others continue from the larger
count, and add only the time after they have read it, so no second counts twice.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from safewriter.coordination import probe
from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.configuration import OnBlocked
from safewriter.coordination.order import check_startable, obstacle
from safewriter.coordination.record import QUEUE_MAX, End, Record
from safewriter.coordination.transitions import (
    end,
    go_before,
    goes_first,
    grant,
    has_completed,
    join,
    leave,
    next_waiter,
    noted,
    renew,
)
from safewriter.deadline import epoch_ms
from safewriter.errors import TurnBlockedError, TurnSkippedError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backend import Backend, Stored
    from safewriter.coordination.configuration import Configuration
    from safewriter.coordination.record import Holder, Waiter

__all__ = ["Acquirer", "Times", "uptime_s"]

_CLAIM_S: Final = 1.0
_CLAIM_POLLS: Final = 6
"""The next waiter loses its place if it has not asked for this many of its polls (at least 1 s, at most 60 s). If it is
alive, it joins again.
"""
_FAR_POLLS: Final = 3
"""A waiter polls at least each third time, far below its claim."""
_CLAIM_MAX_S: Final = 60.0
_SEEN_AGAIN_MS: Final = 86_400_000
_ATTEMPTS: Final = 10
"""Attempts in one poll, while others change the record."""


def uptime_s() -> float:
    """Return this machine's uptime in seconds. It includes sleep, and no process can set it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Times:
    """When a request was sent and when it was answered, by `uptime_s`."""

    asked_s: float
    answered_s: float


@dataclass(slots=True)
class _Watch:
    """How long a value has not changed. `before_s`: the time that others observed, up to `since_s` at the latest."""

    value: object = None
    since_s: float = 0.0
    before_s: float = 0.0

    def unchanged_s(self, value: object, times: Times, before_s: float = 0.0) -> float:
        unchanged_s = self.before_s + times.asked_s - self.since_s
        if value == self.value and unchanged_s >= before_s:
            return unchanged_s
        self.value, self.since_s, self.before_s = value, times.answered_s, before_s
        return before_s


@dataclass(slots=True)
class Acquirer:
    """Acquires one lease for a job. `nonce` names the lease; `run` is the run that asks, for people.

    With `run_has_one_turn` a second turn of that run does not count: its event was delivered twice.
    """

    backend: Backend
    configuration: Configuration
    nonce: str
    run: str = ""
    run_has_one_turn: bool = False
    clock_s: Callable[[], float] = uptime_s
    may_wait: Callable[[], bool] = lambda: True
    _holder: _Watch = field(default_factory=_Watch)
    _waiter: _Watch = field(default_factory=_Watch)
    _last: Stored | None = None

    def acquire(self) -> tuple[Stored, Times]:
        """Return the record with this lease, and when the request that wrote it was sent and answered.

        Raises `TurnBlockedError` once the job may wait no longer, or `TurnSkippedError` with `on.blocked=skip`, and
        `SettingError` for an order that no job can start. The job has then left the queue, if the service answers.
        """
        try:
            return self._acquire(self.clock_s())
        except BaseException:
            self._leave()
            raise

    def _acquire(self, started_s: float) -> tuple[Stored, Times]:
        while True:
            granted, reason = self._try_again_at_once()
            if granted is not None:
                return granted
            waited_s = self.clock_s() - started_s
            left_s = self.configuration.max_wait_s - waited_s
            if left_s <= 0 or not self.may_wait():
                raise self._blocked(reason, waited_s)
            before = [] if self._last is None else go_before(self._last.record, self.nonce)
            pause_s = self._pause_s(before)
            self.backend.wait(self._last, min(pause_s, left_s), before[-1].nonce if before else "")

    def _pause_s(self, before: list[Waiter]) -> float:
        """Return the time to the next poll: behind others as long as the last turns took, as many as come before. It
        stays so short that the job keeps its place; clocks that differ make it no worse.
        """
        poll_s = self.configuration.poll_s
        if self._last is None or not before:
            return poll_s
        last = self._last.record.history[-1 - len(before) :]
        took_s = (last[-1].until_ms - last[0].until_ms) / 1000 if len(last) > len(before) else 0.0
        return min(max(poll_s, took_s), poll_s * _FAR_POLLS)

    def _try_again_at_once(self) -> tuple[tuple[Stored, Times] | None, str]:
        """Make one attempt, and retry soon if another process changes the record meanwhile: a job that waited for its
        next poll would never enter the queue of a busy lock. Of jobs that ask at the same time one succeeds, so the
        others retry at random moments, of a range that doubles.
        """
        for attempt in range(_ATTEMPTS):
            asked_s = self.clock_s()
            try:
                return self._try()
            except RecordChanged:
                if not self.may_wait():
                    break
                pause_s = random.random() * (self.clock_s() - asked_s) * 2**attempt  # noqa: S311 - no secret
                self.backend.wait(None, min(pause_s, self.configuration.poll_s))
        return None, f"{self.configuration.lock} changes faster than it can be taken"

    def _try(self) -> tuple[tuple[Stored, Times] | None, str]:
        """Make one attempt; return the lease, or the reason why there is none yet. Raises `RecordChanged`."""
        try:
            times, stored = self._read()
            record = self._present(stored)
            changed, reason = self._step(record, stored, times)
            if changed is None:
                return None, reason
            asked_s = self.clock_s()
            written = self.backend.write(changed, stored)
            if written.record.is_held_by(self.nonce):
                return (written, Times(asked_s, self.clock_s())), ""
            self._last = written
        except StoreError as error:
            if error.denied:
                raise
            return None, str(error)
        return None, reason

    def _step(self, record: Record, stored: Stored | None, times: Times) -> tuple[Record | None, str]:
        if stored is not None and stored.is_held_by(self.nonce):
            # The answer that granted the lease was lost, and waiters have counted since: renew, to restart their count.
            return renew(record), "the lock service has not confirmed the turn"
        check_startable(record, self.configuration)
        return self._next(record, stored, times)

    def _read(self) -> tuple[Times, Stored | None]:
        asked_s = self.clock_s()
        stored = self._last = self.backend.read(self.configuration.lock)
        return Times(asked_s, self.clock_s()), stored

    def _present(self, stored: Stored | None) -> Record:
        """Return the record. The first job at a lock, or at a lock on another server, probes the server first."""
        record = Record(self.configuration.lock) if stored is None else stored.record
        if self.backend.server and self.backend.server not in record.servers:
            probe.check(self.backend)
            record = probe.noted(record, self.backend.server)
        return record

    def _next(self, record: Record, stored: Stored | None, times: Times) -> tuple[Record | None, str]:
        """Return the changed record, if there is a change to make, and the reason if that change grants no turn."""
        if record.holder is not None:
            if not self._is_dead(record, stored, times):
                return self._waiting(record, stored), f"{record.holder.job} holds {record.lock}"
            record = end(record, End.EXPIRED, epoch_ms())
        following = next_waiter(record)
        if following is not None and self._gave_up(following, record.token, times):
            return leave(record, following.nonce), f"{following.job} waited and asks no more"
        repeats = self.run_has_one_turn and has_completed(record, self.configuration.job, self.run)
        if reason := None if repeats else self._obstacle(record):
            if self.configuration.on_blocked is not OnBlocked.WAIT and not self.configuration.defers:
                self._note(record, stored)
                raise self._blocked(reason, 0.0)
            return self._waiting(record, stored), reason
        first = goes_first(record, self.configuration, self.nonce)
        if first is not None:
            return self._waiting(record, stored), f"{first.job} goes first"
        return grant(record, self.configuration, self.nonce, self.run, epoch_ms(), repeats=repeats), ""

    def _obstacle(self, record: Record) -> str | None:
        return obstacle(record, self.configuration.job, record.ordered(self.configuration))

    def _note(self, record: Record, stored: Stored | None) -> None:
        """Note the probe and the order of a job that never waits, so that a ring that no job can start is detected."""
        name, now_ms = self.configuration.job, epoch_ms()
        changed = noted(record, self.configuration, now_ms)
        # Once a day also note that it asks: if the record forgot the job, it could get a turn that its order denies.
        if stored is None or changed != stored.record or now_ms - stored.record.job(name).seen_ms > _SEEN_AGAIN_MS:
            self.backend.write(changed, stored)

    def _waiting(self, record: Record, stored: Stored | None) -> Record | None:
        """Return the changed record: the job has joined the queue, with a dead holder's end and a probe noted."""
        is_waiting = any(waiter.nonce == self.nonce for waiter in record.queue)
        if is_waiting or len(record.queue) >= QUEUE_MAX:  # if the queue is full, the job asks without a place in it
            return None if stored is not None and record == stored.record else record
        return join(record, self.configuration, self.nonce, epoch_ms())

    def _is_dead(self, record: Record, stored: Stored | None, times: Times) -> bool:
        if record.holder is None:
            raise AssertionError  # for the type checker
        if stored is not None and stored.is_alive is False:
            return True
        return self._silent_s(record.holder, times) > record.holder.lease_s

    def _silent_s(self, holder: Holder, times: Times) -> float:
        """Return for how many seconds this waiter, and others before it, have seen no renewal."""
        return self._holder.unchanged_s((holder.nonce, holder.beat), times, holder.silent_s)

    def _gave_up(self, waiter: Waiter, token: int, times: Times) -> bool:
        # The token is part of the value: the time restarts when any other job has had a turn.
        unchanged_s = self._waiter.unchanged_s((waiter.nonce, waiter.ticket, token), times)
        return unchanged_s > min(max(_CLAIM_S, _CLAIM_POLLS * waiter.poll_s), _CLAIM_MAX_S)

    def _blocked(self, reason: str, waited_s: float) -> TurnBlockedError:
        kind = TurnSkippedError if self.configuration.on_blocked is OnBlocked.SKIP else TurnBlockedError
        return kind(
            f"{self.configuration.job} has no turn on {self.configuration.lock} after {waited_s:.0f} s: {reason}."
            " Nothing was written"
        )

    def _leave(self) -> None:
        """Leave the queue, and give back a lease whose reply was lost. Both expire if the service does not answer."""
        unanswered = 0
        for _ in range(_ATTEMPTS):
            try:
                times, stored = self._read()
                left = None if stored is None else self._left(stored.record, times)
                if left is None:
                    return
                self.backend.write(left, stored)
            except RecordChanged:
                continue
            except StoreError:
                unanswered += 1
                if unanswered > 1:
                    return
            else:
                return

    def _left(self, record: Record, times: Times) -> Record | None:
        if record.is_held_by(self.nonce):
            return end(record, End.FAILED, epoch_ms())
        left = leave(record, self.nonce)
        if left == record:
            return None
        if left.holder is None:
            return left
        return replace(left, holder=replace(left.holder, silent_s=self._silent_s(left.holder, times)))
