"""A turn that the handler holds for its job, as the job's process sees it.

The handler takes the turn, renews it, ends the job when the turn is lost, and gives it back once the outcome is
settled. The job only notes its guarded writes in the record, which fails once another job has the turn.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.transitions import open_write
from safewriter.errors import SettingError, TurnLostError
from safewriter.objects.store import StoreError
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from safewriter.coordination.backend import Backend, Stored
    from safewriter.coordination.record import OpenWrite
    from safewriter.coordination.turn import Turn

__all__ = ["VARIABLE", "BorrowedTurn", "borrowed_turn", "lent"]

VARIABLE: Final = "SOAL_TURN"
_ROUNDS_MAX: Final = 50


def lent(turn: Turn, backend: str, previous: str | None) -> str:
    """Return the value of `SOAL_TURN` for the process of a job."""
    turn.is_lent = True
    fields = {"backend": backend, "lock": turn.lock, "job": turn.job, "token": turn.token, "nonce": turn.nonce}
    return json.dumps({**fields, "previous": previous})


class BorrowedTurn:
    """A turn that another process holds."""

    def __init__(self, backend: Backend, fields: dict[str, Any]) -> None:
        self._backend, self._where = backend, str(fields["backend"])
        self.lock, self.job = str(fields["lock"]), str(fields["job"])
        self.token, self.nonce = int(fields["token"]), str(fields["nonce"])
        self.previous: str | None = fields["previous"]
        self.left_s = float("inf")  # the holder ends this process in time

    def is_of(self, lock: str, backend: str) -> bool:
        """Return whether this is a turn on `lock` at the backend with this URI."""
        return (self.lock, self._where) == (lock, backend)

    @property
    def is_lost(self) -> bool:
        """Whether a read of the record has shown another lease."""
        return self.left_s <= 0

    def check(self) -> None:
        """Raise `TurnLostError` if the record names another lease."""
        self._read()

    def _read(self) -> Stored:
        stored = self._backend.read(self.lock)
        if stored is None or not stored.is_held_by(self.nonce):
            self.left_s = 0.0
            raise self.lost_error()
        return stored

    def open_write(self, write: OpenWrite) -> None:
        """Note a write in the record. Raises `TurnLostError` if the record names another lease."""
        for _ in range(_ROUNDS_MAX):
            stored = self._read()
            try:
                self._backend.write(open_write(stored.record, write), stored)
            except RecordChanged:
                continue
            return
        raise StoreError(f"the record of {self.lock} changes faster than it can be written")

    def lost_error(self) -> TurnLostError:
        """Return the error that says that the turn is lost."""
        return TurnLostError(
            f"the turn of {self.job} on {self.lock} (token {self.token}) has ended: another job has it, or this job"
            " may not read the lock's record"
        )


def borrowed_turn() -> BorrowedTurn | None:
    """Return the turn that the handler holds for this job, if any. Raises `SettingError` if `SOAL_TURN` is damaged."""
    text = os.environ.get(VARIABLE)
    return None if not text else _of(text)


@lru_cache(maxsize=1)
def _of(text: str) -> BorrowedTurn:
    try:
        fields = parsed(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or not fields.keys() >= {"backend", "lock", "job", "token", "nonce", "previous"}:
        raise SettingError(VARIABLE, "is not the handler's; a job must not set it")
    return BorrowedTurn(open_backend(str(fields["backend"])), fields)
