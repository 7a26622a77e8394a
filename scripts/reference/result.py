"""The result document: its fields with those of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.outcome.result import ErrorResult, Memory, Result, Timings, Versions, WriteResult
from scripts.reference.model import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

__all__ = ["fields"]

_PARTS: Final[Mapping[str, type[BaseModel]]] = {
    "error": ErrorResult,
    "writes[]": WriteResult,
    "timings": Timings,
    "memory": Memory,
    "versions": Versions,
}


def fields() -> str:
    """Return each field of the document, then those of each part of it."""
    sections = ["\n\n".join(described(Result, defaults=False))]
    for name, model in _PARTS.items():
        inner = "\n\n".join(described(model, parent=f"{name}.", defaults=False))
        sections.append(f"## `{name}`\n\n{model.__doc__}\n\n{inner}")
    return "\n\n".join(sections)
