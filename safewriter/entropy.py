"""Random ids that no two copies of one process share.

A memory snapshot of a started function may be restored many times at once. Until something from outside reaches a
restored machine, its kernel gives each copy the same random bytes, and with them the same run ids and nonces: each
copy would take the other's document for its own. Here the kernel's bytes are mixed with all that came from outside.
"""

from __future__ import annotations

import os
import threading
import time
from hashlib import blake2b
from typing import Final

__all__ = ["renew", "unique_id"]

_OUTSIDE: Final = ("SOAL_RUN_ID", "SOAL_REQUEST_ID")
"""What the handler passes to the processes of an attempt. Read at each draw: a job's Python is a fork of a process that
has imported this module before any event, and its memory may be a copy.
"""


class _Pool:
    """The state that ids are drawn from. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = b""
        self.renew()

    def renew(self, *outside: str) -> None:
        texts = (text.encode(errors="surrogatepass") for text in outside)  # JSON may escape half a character
        with self._lock:
            self._state = _digest(self._state, os.urandom(32), *texts)

    def draw(self) -> str:
        # The clock is only a second line: after a restore, copies may have the same time.
        outside = (os.environ.get(name, "").encode() for name in _OUTSIDE)
        return _digest(self._state, os.urandom(32), time.time_ns().to_bytes(8), *outside)[:16].hex()


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=32)
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()


_POOL: Final = _Pool()


def renew(*outside: str) -> None:
    """Mix texts into the ids of this process, as soon as they have come from outside: an event's request id."""
    _POOL.renew(*outside)


def unique_id() -> str:
    """Return a new random id of 32 hexadecimal digits.

    Two copies of a process draw different ids once each has been renewed with a text of its own.
    """
    return _POOL.draw()
