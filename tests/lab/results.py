"""The results of long work in a folder: a manifest with the parameters, and each result as a line of JSON.

A line is one `write(2)`, so a killed process leaves only whole lines, and several processes may append.
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
    """The folder holds results with other parameters; the message names the difference."""


def begin(manifest: Path, about: Mapping[str, Any]) -> None:
    """Write the manifest, or compare it with the existing one. Raises `OtherResultsError`."""
    if not manifest.exists():
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return
    found = json.loads(manifest.read_text(encoding="utf-8"))
    for name, value in about.items():
        if found.get(name) != value:
            raise OtherResultsError(f"{manifest}: {name} is {found.get(name)!r} there, and {value!r} now")


def append(path: Path, *lines: BaseModel) -> None:
    """Append lines, all at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, b"".join(line.model_dump_json().encode() + b"\n" for line in lines))
    finally:
        os.close(descriptor)


def read(path: Path, kind: type[_Line]) -> tuple[_Line, ...]:
    """Read the lines, the oldest first; empty without such a file."""
    if not path.exists():
        return ()
    return tuple(kind.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines() if line)
