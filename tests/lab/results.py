"""The results of long work in a folder: a manifest says what they are of, and each is a line of JSON.

A line is one `write(2)`, so that a killed process leaves whole lines, and several processes may add some.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["OtherResultsError", "append", "begin", "read"]

_Line = TypeVar("_Line", bound=BaseModel)


class OtherResultsError(Exception):
    """The folder holds results of something else; the message names the difference."""


def begin(manifest: Path, about: Mapping[str, Any]) -> None:
    """Write the manifest, or compare with the one that is there. Raises `OtherResultsError`."""
    if not manifest.exists():
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return
    found = json.loads(manifest.read_text(encoding="utf-8"))
    for name, value in about.items():
        if found.get(name) != value:
            raise OtherResultsError(f"{manifest}: {name} is {found.get(name)!r} there, and {value!r} now")


def append(path: Path, *lines: BaseModel) -> None:
    """Add lines, all at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, b"".join(line.model_dump_json().encode() + b"\n" for line in lines))
    finally:
        os.close(descriptor)


def read(path: Path, kind: type[_Line]) -> tuple[_Line, ...]:
    """Return the lines, the oldest first; none if there is no such file."""
    if not path.exists():
        return ()
    return tuple(kind.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines() if line)
