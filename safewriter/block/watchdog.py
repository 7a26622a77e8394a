"""The threads of a block: one acts before the deadline; one renews the lease if there is no supervisor."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Heartbeat", "Watchdog"]

_STEP_MAX_S: Final = 1.0
_log = logging.getLogger(__name__)


class Watchdog:
    """Calls `act` once when no time is left, unless it is stopped before. `left_ms` returns the milliseconds left."""

    def __init__(self, left_ms: Callable[[], int], act: Callable[[], None]) -> None:
        self._left_ms = left_ms
        self._act = act
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="safewriter-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End watching; an `act` that has begun continues."""
        self._stopped.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for an `act` that has begun; False if it has not ended in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _watch(self) -> None:
        # Waits in small steps, by the wall clock: a frozen sandbox that thaws must notice at once how late it is.
        while (left_ms := self._left_ms()) > 0:
            if self._stopped.wait(min(left_ms / 1000, _STEP_MAX_S)):
                return
        if not self._stopped.is_set():
            self._act()


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
            except Exception as error:  # noqa: BLE001 - no safety rests on a lease
                _log.warning("the lease was not renewed, so a retry may take this attempt for dead: %s", error)
