"""The formats that are guarded: the one place that names them all.

`docs/concepts/formats.md` says how to add one. A format is imported at its first use, so that a settler of Delta
tables needs nothing of Iceberg.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from safewriter.tables.format import Format, ScriptFormat

__all__ = ["FORMATS", "format_for_scripts", "format_of"]

FORMATS = {
    "delta": "safewriter.tables.delta.format",
    "iceberg": "safewriter.tables.iceberg.format",
    "snapshot": "safewriter.snapshots.settle.format",
}
"""The module of each format by its name; the module's `FORMAT` is the format."""
_LIBRARIES: Final = {"snapshot": "safewriter.snapshots"}
"""Formats that a library writes, not Spark statements. The library opens the block itself, and gives `Block.of` its own
`Session`. A script's block of such a format would guard nothing.
"""


def format_of(name: str) -> Format:
    """Return a format by its name; raise `UnsupportedError` if there is none of that name."""
    if name not in FORMATS:
        raise UnsupportedError(f"format {name!r} is not guarded; use {_choice()}")
    adapter: Format = import_module(FORMATS[name]).FORMAT
    return adapter


def format_for_scripts(name: str) -> ScriptFormat:
    """Return a format by its name; raise `UnsupportedError` also if a script's block would guard nothing."""
    if name in _LIBRARIES:
        raise UnsupportedError(
            f"format {name!r} is not one of a block, which would guard nothing: {_LIBRARIES[name]} writes it, and"
            f" guards what it writes; for a table use {_choice()}"
        )
    adapter: ScriptFormat = format_of(name)  # type: ignore[assignment]  # each format that no library writes is one
    return adapter


def _choice() -> str:
    return " or ".join(repr(name) for name in FORMATS if name not in _LIBRARIES)
