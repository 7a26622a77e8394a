"""Which tables a job is writing right now, from the journal that it keeps for its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter import journal

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OpenWrites"]


class OpenWrites:
    """The blocks that are open. To be asked from one thread."""

    def __init__(self, path: Path) -> None:
        self._journal = journal.Follower(path)
        self._tables: dict[str, str] = {}

    def tables(self) -> tuple[str, ...]:
        """Return their tables, each once, in the order of opening."""
        for entry in self._journal.fresh():
            nonce = entry.fields.get("nonce", "")
            if entry.event == "write_opened":
                self._tables[nonce] = entry.fields.get("table", "")
            elif entry.event == "write_closed":
                self._tables.pop(nonce, None)
        return tuple(dict.fromkeys(self._tables.values()))
