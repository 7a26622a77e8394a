"""The formats that are guarded: the one place that names them all.

`docs/concepts/formats.md` says how to add one. A format is imported at its first use, so that a settler of Delta
tables needs nothing of Iceberg.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from safewriter.tables.format import Format

__all__ = ["FORMATS", "check_for_scripts", "format_of"]

FORMATS = {
    "delta": "safewriter.tables.delta.format",
    "iceberg": "safewriter.tables.iceberg.format",
    "snapshot": "safewriter.snapshots.settle.format",
}
"""The module of each format by its name; the module's `FORMAT` is the format."""
_OF_LIBRARIES: Final = {"snapshot": "safewriter.snapshots"}
"""Formats that no statement of Spark writes: a library does, and opens the block itself. A script's own block of such a
format would guard nothing.
"""


def check_for_scripts(name: str) -> None:
    """Raise `UnsupportedError` unless a script's block guards its statements on tables of this format."""
    if name in _OF_LIBRARIES:
        raise UnsupportedError(
            f"format {name!r} is not one of a block, which would guard nothing: {_OF_LIBRARIES[name]} writes it, and"
            f" guards what it writes; for a table use {_choice()}"
        )
    if name not in FORMATS:
        raise _unknown(name)


def format_of(name: str) -> Format:
    """Return a format by its name; `UnsupportedError` if there is none of that name."""
    if name not in FORMATS:
        raise _unknown(name)
    found: Format = import_module(FORMATS[name]).FORMAT
    return found


def _unknown(name: str) -> UnsupportedError:
    return UnsupportedError(f"format {name!r} is not guarded; use {_choice()}")


def _choice() -> str:
    return " or ".join(repr(name) for name in FORMATS if name not in _OF_LIBRARIES)
