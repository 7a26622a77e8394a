"""Which objects are job documents, and which events name their run: asked by the handler and by the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from handler.request.continuation import unwrapped
from handler.request.trigger import recognise

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DISTINCTIVE", "is_document", "names_its_run"]

DISTINCTIVE: Final = frozenset(
    {"entryPoint", "script", "jobDriver", "entryPointArguments", "sparkSubmitParameters", "pyFiles", "clientToken"}
)
"""Any of these fields marks an object as a job document; `name`, `tags` and `conf` are too common to decide."""


def is_document(event: Mapping[str, Any]) -> bool:
    """Return whether an object is a job document, and no event that the script receives."""
    return not DISTINCTIVE.isdisjoint(event)


def names_its_run(event: object) -> bool:
    """Return whether an event names its run, so that each delivery of it is an attempt of the same one. Raises
    `InputError` for an event that the handler refuses, but not for each of those.
    """
    first_event, continuation = unwrapped(event)
    if continuation is not None:
        return True
    if not isinstance(first_event, dict):
        return False
    if is_document(first_event):
        return first_event.get("clientToken") is not None
    trigger = recognise(first_event)
    return trigger is not None and trigger.identity is not None
