"""Filter names: all words, none of the -words."""

from __future__ import annotations

__all__ = ["is_selected"]


def is_selected(name: str, select: str) -> bool:
    """Return whether a name holds each word of `select`, and no word that has a minus before it."""
    return all((word[1:] not in name) if word.startswith("-") else word in name for word in select.split())
