"""The interface of a lock service: one record for each lock, read and changed by compare-and-swap."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.record import Record

__all__ = ["Backend", "Connection", "RecordChanged", "Stored"]


class RecordChanged(Exception):  # noqa: N818 - as `PreconditionFailed`, the name of an answer
    """The record is no longer the one that was read; nothing was changed."""


class Connection(Enum):
    """The state of a backend's session with the service, if the service has sessions."""

    CONNECTED = auto()
    SUSPENDED = auto()
    """The service does not answer at the moment: a holder pauses."""
    LOST = auto()
    """The service has ended the session, and with it the lease: a holder aborts."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as read or written. `version` is the backend's own.

    `is_alive`: whether the holder's session is alive, if the service has sessions. False ends the lease at once; else
    the holder's renewals count, since a live process may not know of its lease, or of the end of it.
    """

    record: Record
    version: object
    is_alive: bool | None = None

    def is_held_by(self, nonce: str) -> bool:
        """Return whether this lease holds the lock, as far as the service knows."""
        return self.record.is_held_by(nonce) and self.is_alive is not False


class Backend(Protocol):
    """A lock service. Methods raise `StoreError` if the service does not answer, or its answer is inconclusive."""

    server: str
    """The name of a server whose conditional writes are probed once; empty for a server that is known to keep them."""

    def read(self, lock: str) -> Stored | None:
        """Return the record; None if there is none."""
        ...

    def write(self, record: Record, after: Stored | None) -> Stored:
        """Write the record if it still is as in `after` (None: if there is none); raise `RecordChanged` otherwise.

        If the write landed and only its reply was lost, it counts as written. The backend may raise the token of a
        lease; the returned record is the one that counts.
        """
        ...

    def wait(self, last: Stored | None, timeout_s: float, after: str = "") -> None:
        """Wait until the job that read `last` may have its turn, at most `timeout_s` seconds.

        `after`: the nonce of the waiter that goes directly before this one, whose turn comes and ends first.
        """
        ...

    def locks(self) -> Iterator[str]:
        """Return the names of all locks."""
        ...

    def listen(self, listener: Callable[[Connection], None]) -> None:
        """Report changes of the session to the listener. A service without sessions never calls it."""
        ...

    def close(self) -> None:
        """End the session. Its leases expire."""
        ...
