"""Requests that came before their rows: stored beside the stream's checkpoint until the next batch takes them up.

One file for each batch, written once and before the table's commit. A repeated delivery of a batch reads what the first
one decided. So each request is either in the batch's commit or in its file, never in both.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Pending"]


class Pending:
    """The files of one stream: a request is an id with its contact."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def before(self, batch: int) -> dict[str, str]:
        """Return the requests that the previous batch has kept."""
        path = self._path(batch - 1)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def keep(self, batch: int, requests: dict[str, str]) -> dict[str, str]:
        """Keep the requests; return those of an earlier delivery of the batch, if there was one."""
        path = self._path(batch)
        written = path.with_suffix(f".{uuid.uuid4().hex}")
        written.write_text(json.dumps(requests), encoding="utf-8")
        try:
            os.link(written, path)  # atomically, and never over an existing file
        except FileExistsError:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        finally:
            written.unlink()
        return requests

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.json"
