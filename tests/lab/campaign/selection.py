"""Choose by words."""

from __future__ import annotations

__all__ = ["is_selected"]


def is_selected(name: str, select: str) -> bool:
    """Tell whether a name holds each word of `select`, and none that stands there with a minus before it."""
    return all((word[1:] not in name) if word.startswith("-") else word in name for word in select.split())
