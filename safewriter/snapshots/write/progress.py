"""Tell during a build how many shards are stored: the driver has no results of tasks before its one Spark job ends."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.settle.leftovers import BuildId

__all__ = ["ShardProgress"]

_log = logging.getLogger(__name__)
_EVERY_S: Final = 10.0


class ShardProgress:
    """Lists a build's shards every `every_s` seconds from `start` to `stop`, and calls `report` with a new number."""

    def __init__(
        self, store: ObjectStore, names: BuildId, report: Callable[[int], object], every_s: float = _EVERY_S
    ) -> None:
        self._store, self._names, self._report, self._every_s = store, names, report, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="soal-shard-progress", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; nothing is reported after this returns."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()  # bounded: it waits for the event, or for one listing

    def _look(self) -> None:
        stored = 0
        while not self._ended.wait(self._every_s):
            try:
                now = self._names.stored_shards(self._store)
            except StoreError as error:
                _log.warning("a build's progress is not known any more: %s", error)
                return
            if now != stored and not self._ended.is_set():
                stored = now
                self._report(stored)
