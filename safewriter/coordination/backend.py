"""What a lock service must offer: one record for each lock, read and changed by compare-and-swap."""

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
    """What a backend learns of its session with the service, where it has one."""

    CONNECTED = auto()
    SUSPENDED = auto()
    """No answer for the moment: a holder pauses."""
    LOST = auto()
    """The service has ended the session, and with it the grant: a holder aborts."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as read or written. `version` is the backend's own.

    `is_alive`: whether the holder's session lives, by a service that knows; False ends the grant at once. Else the
    holder's renewals tell: a process may live on that has not learnt of its grant, or of the end of it.
    """

    record: Record
    version: object
    is_alive: bool | None = None

    def is_held_by(self, nonce: str) -> bool:
        """Tell whether this grant holds the lock, as far as the service knows."""
        return self.record.is_held_by(nonce) and self.is_alive is not False


class Backend(Protocol):
    """A lock service. Methods raise `StoreError` if the service does not answer, or its answer does not tell."""

    server: str
    """Names the server, so that its conditional writes are probed once; empty: they are known to hold."""

    def read(self, lock: str) -> Stored | None:
        """Return the record; None if there is none."""
        ...

    def write(self, record: Record, after: Stored | None) -> Stored:
        """Write the record if it still is as in `after` (None: if there is none); raise `RecordChanged` otherwise.

        A write of this caller that landed never counts as lost, also if its reply is. The backend may raise the token
        of a grant; the returned record is the one that counts.
        """
        ...

    def wait(self, last: Stored | None, timeout_s: float) -> None:
        """Return when the record may have changed since `last`, at the latest after `timeout_s` seconds."""
        ...

    def locks(self) -> Iterator[str]:
        """Return the names of all locks."""
        ...

    def listen(self, listener: Callable[[Connection], None]) -> None:
        """Tell the listener of changes of the session; a service without sessions has none to tell."""
        ...

    def close(self) -> None:
        """End the session. What it holds expires."""
        ...
