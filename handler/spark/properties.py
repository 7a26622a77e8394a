"""Spark's properties files (java.util.Properties, UTF-8)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["read_properties", "write_properties"]

_LINE: Final = re.compile(r"([^\s=]+)[\s=]+(.*)")
_ESCAPED: Final = re.compile(r"[\\:=#!\s]")


def read_properties(path: Path) -> dict[str, str]:
    """Read a file of SoAL: `key value` or `key=value` per line, `#` begins a comment line, no escapes."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    matches = [(line, _LINE.fullmatch(line)) for line in lines if line and not line.startswith("#")]
    if bad := [line for line, match in matches if match is None]:
        raise ValueError(f"{path}: {bad[0]!r} is not a setting")
    return {match[1]: match[2].strip() for _, match in matches if match is not None}


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a file that Java reads back exactly."""
    lines = (f"{_escaped(key)}={_escaped(value)}\n" for key, value in sorted(properties.items()))
    path.write_text("".join(lines), encoding="utf-8")


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\\" + match[0], text)
