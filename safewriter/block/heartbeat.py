"""The thread that renews the lease of a block where no supervisor does it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Heartbeat"]


class Heartbeat:
    """Calls `beat` every `every_s` seconds until it is stopped; a beat that fails is retried at the next one."""

    def __init__(self, every_s: float, beat: Callable[[], None]) -> None:
        self._every_s = every_s
        self._beat = beat
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="safewriter-lease", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a beat that has begun continues."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            try:
                self._beat()
            except Exception:  # noqa: BLE001, S112 - no safety rests on a lease
                continue
