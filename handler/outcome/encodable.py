"""Make outside text encodable as UTF-8."""

from __future__ import annotations

__all__ = ["encodable"]


def encodable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode and a script or a JSON document may contain."""
    return text.encode("utf-8", "backslashreplace").decode()
