"""The stack's context keys, from its configuration model."""

from __future__ import annotations

from typing import Final

from handler.variables import VARIABLES
from infra.config import Config
from scripts.reference.model import described

__all__ = ["keys"]

_BECOMES: Final = {one.key: one.name for one in VARIABLES if one.key is not None}


def keys() -> str:
    """Return each key with its meaning, and the variable that it sets if there is one."""
    parts = []
    for name, entry in zip(Config.model_fields, described(Config), strict=True):
        variable = _BECOMES.get(name)
        parts.append(entry + (f" Sets `{variable}`." if variable is not None else ""))
    return "\n\n".join(parts)
