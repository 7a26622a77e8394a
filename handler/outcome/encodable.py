"""Text of others, in a form that every document and line can hold."""

from __future__ import annotations

__all__ = ["encodable"]


def encodable(text: str) -> str:
    """Return a text as UTF-8 can hold it: half of a surrogate pair, which a script or a JSON document may bring, by its
    number.
    """
    return text.encode("utf-8", "backslashreplace").decode()
