"""A turn that is held: renewed in the background, checked before each use, and given back."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from safewriter.coordination.acquiring import uptime_s
from safewriter.coordination.backend import Connection, RecordChanged
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end, forget_settled, open_write, renew
from safewriter.deadline import epoch_ms
from safewriter.errors import TurnLostError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from safewriter.coordination.acquiring import Times
    from safewriter.coordination.backend import Backend, Stored
    from safewriter.coordination.configuration import Configuration
    from safewriter.coordination.record import OpenWrite, Record

__all__ = ["Turn"]

_RENEWALS: Final = 3
"""Renewals in one lease."""
_MARGIN: Final = 5
"""The holder stops 1/5 of a lease before the lease can end."""
_PAUSE_S: Final = 0.05
_TRIES: Final = 3
"""Attempts at a change that has no answer."""
_CHANGES_MAX: Final = 50
_SESSION_ENDED: Final = "the lock service ended the session"


class Turn:
    """One lease of a lock. `token` is higher than that of every earlier lease.

    The holder may act while `left_s` is positive. The lease counts from when the last answered renewal was sent, so no
    other job can have taken the lock over by then.
    """

    def __init__(
        self,
        backend: Backend,
        configuration: Configuration,
        stored: Stored,
        times: Times,
        *,
        clock_s: Callable[[], float] = uptime_s,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        holder = stored.record.holder
        if holder is None:
            raise ValueError(f"{stored.record.lock} is free")
        self.lock, self.job, self.token = stored.record.lock, holder.job, holder.token
        self.repeats = holder.repeats
        """The run has completed a turn before, so this turn was granted without regard to the order."""
        self._backend, self._configuration, self.nonce = backend, configuration, holder.nonce
        self._clock_s, self._sleep = clock_s, sleep
        self._stored = stored
        self._sure_until_s = 0.0
        self._lost: str | None = None
        self._unrenewed = ""
        """Why the last renewal failed."""
        self._suspended = False
        self.is_lent = False
        """Another process also notes writes under this turn."""
        self._one_at_a_time = threading.RLock()
        self._stopped = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._renewing, name="safewriter-turn", daemon=True)
        self._confirmed(times.asked_s)
        backend.listen(self._heard)

    # -- the holder's view -------------------------------------------------------------------------------------------

    @property
    def left_s(self) -> float:
        """The seconds until another job may take this turn over. At zero the holder must stop."""
        return 0.0 if self._lost is not None or os.getpid() != self._process else self._sure_until_s - self._clock_s()

    @property
    def is_lost(self) -> bool:
        """Whether the turn is known to have ended."""
        return self._lost is not None

    def check(self) -> None:
        """Raise `TurnLostError` unless the turn is surely held; wait while the connection is suspended."""
        while self._suspended and self.left_s > 0:
            self._sleep(_PAUSE_S)
        if self.left_s <= 0:
            raise self.lost_error()

    @property
    def writes(self) -> tuple[OpenWrite, ...]:
        """The guarded writes that this turn has opened."""
        holder = self._stored.record.holder
        return () if holder is None or holder.nonce != self.nonce else holder.writes

    def latest_writes(self) -> tuple[OpenWrite, ...]:
        """Return `writes`; for a lent turn, read the record again first, which has those of the job's process."""
        if self.is_lent:
            with self._one_at_a_time:
                self._reread(is_last=False)
        return self.writes

    @property
    def unsettled(self) -> tuple[OpenWrite, ...]:
        """Writes of earlier holders that lost the lock; they must be settled before this turn writes."""
        return self._stored.record.unsettled

    def start(self) -> None:
        """Start the renewals."""
        self._thread.start()

    def open_write(self, write: OpenWrite) -> None:
        """Note a write in the record, where the next holder finds it if this one dies. Raises `TurnLostError`."""
        self._change(lambda record: open_write(record, write))

    def settled(self, writes: Collection[OpenWrite]) -> None:
        """Remove settled writes of earlier holders from the record. Raises `TurnLostError`."""
        if writes:
            self._change(lambda record: forget_settled(record, writes))

    def release(self, how: End, decided: Collection[OpenWrite] = ()) -> bool:
        """Give the turn back; return False if it was lost before, or has a write that is not `decided`, so that it does
        not count as completed. Raises `StoreError` if the service does not answer; the lease then ends the turn, which
        does not count as completed.
        """
        if os.getpid() != self._process:  # the turn is the parent's
            return False
        self.stop()
        try:
            self._change(lambda record: end(record, how, epoch_ms(), decided), is_last=True)
        except TurnLostError:
            return False
        self._lost = "it was given back"
        noted = next((past.end for past in reversed(self._stored.record.history) if past.token == self.token), how)
        if noted is End.FAILED and how is not End.FAILED:
            self._lost = "it was given back with a write that has no verdict, so it does not count as completed"
            return False
        return True

    def stop(self) -> None:
        """Stop the renewals; the lease ends the turn."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    # -- the service's view ------------------------------------------------------------------------------------------

    def _change(self, change: Callable[[Record], Record], *, is_last: bool = False) -> None:
        """Change the record while it shows this lease; retry if a waiter or the job's process changes it meanwhile.
        Each change but the last also renews the lease, so the waiters restart their count.
        """
        with self._one_at_a_time:
            unanswered = 0
            for _ in range(_CHANGES_MAX):
                if self._lost is not None or (not is_last and self.left_s <= 0):
                    raise self.lost_error()
                asked_s = self._clock_s()
                try:
                    self._stored = self._backend.write(change(self._stored.record), self._stored)
                except (RecordChanged, StoreError) as error:
                    # A request without an answer may land late; it fails once the record has another version.
                    if self._reread(is_last=is_last):
                        return
                    unanswered += isinstance(error, StoreError)
                    if unanswered == _TRIES:
                        raise
                    continue
                self._confirmed(asked_s)
                return
            raise StoreError(f"the record of {self.lock} changes faster than it can be written")

    def _reread(self, *, is_last: bool) -> bool:
        """Read the record again; return True if an earlier release of this turn has landed. Raises `TurnLostError`."""
        stored = self._backend.read(self.lock)
        if stored is None or not stored.is_held_by(self.nonce):
            ended = stored is not None and any(
                past.token == self.token and past.end not in (End.EXPIRED, End.FORCED) for past in stored.record.history
            )
            if is_last and ended and stored is not None:
                self._stored = stored
                return True
            self._lose(_why(stored, self.nonce, self.token))
            raise self.lost_error()
        self._stored = stored
        return False

    def _renewing(self) -> None:
        every_s = self._configuration.lease_s / _RENEWALS
        pause_s = every_s
        while not self._stopped.wait(pause_s):
            pause_s = every_s
            try:
                self._change(renew)
            except TurnLostError:
                return
            except Exception as error:  # noqa: BLE001 - refused, or no answer: retry soon, until the lease has ended
                self._unrenewed = f": {error}"
                pause_s = min(every_s, max(_PAUSE_S, self.left_s / 10))

    def _confirmed(self, asked_s: float) -> None:
        lease_s = self._configuration.lease_s
        self._sure_until_s = max(self._sure_until_s, asked_s + lease_s - lease_s / _MARGIN)

    def _heard(self, connection: Connection) -> None:
        self._suspended = connection is Connection.SUSPENDED
        if connection is Connection.LOST:
            self._lose(_SESSION_ENDED)

    def _lose(self, why: str) -> None:
        if self._lost is None:
            self._lost = why

    def lost_error(self) -> TurnLostError:
        """Return the error that says how the turn was lost."""
        why = self._lost or f"its lease could not be renewed in time{self._unrenewed}"
        if os.getpid() != self._process:
            why = "it belongs to the process that took it, which started this one"
        return TurnLostError(f"the turn of {self.job} on {self.lock} (token {self.token}) has ended: {why}")

    def give_up(self) -> None:
        """Release without completing; ignore a service that does not answer."""
        with suppress(StoreError):
            self.release(End.FAILED)


def _why(stored: Stored | None, nonce: str, token: int) -> str:
    if stored is None:
        return "its record is gone, or this job may not read it any more"
    if stored.record.is_held_by(nonce):
        return _SESSION_ENDED
    is_forced = any(past.token == token and past.end is End.FORCED for past in stored.record.history)
    return "an operator ended it" if is_forced else "another job has it"
