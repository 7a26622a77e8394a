"""The formats that are guarded: the one place that names them all.

`docs/concepts/formats.md` says how to add one. A format is imported at its first use, so that a settler of Delta
tables needs nothing of Iceberg.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from safewriter.tables.format import Format

__all__ = ["FORMATS", "format_of"]

FORMATS = {
    "delta": "safewriter.tables.delta.format",
    "iceberg": "safewriter.tables.iceberg.format",
    "snapshot": "safewriter.tables.snapshot.format",
}
"""The module of each format by its name; the module's `FORMAT` is the format."""


def format_of(name: str) -> Format:
    """Return a format by its name; `UnsupportedError` if there is none of that name."""
    if name not in FORMATS:
        raise UnsupportedError(f"format {name!r} is not guarded; use {' or '.join(map(repr, FORMATS))}")
    found: Format = import_module(FORMATS[name]).FORMAT
    return found
