"""The generated parts of the reference pages, from the models that the code itself uses, so they cannot differ from it.

A page of docs/reference says where a part belongs: `<!-- generated: NAME -->`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scripts.reference import commands, context, event, examples, python, result, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PARTS", "filled"]

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "event-fields": event.fields,
    "event-settings": event.settings,
    "result-fields": result.fields,
    "variables": variables.variables,
    "context-keys": context.keys,
    "commands": commands.commands,
    "error-tree": python.error_tree,
    "errors": python.errors,
    "spark-examples": examples.examples,
}
_MARK: Final = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


def filled(page: str) -> str:
    """Return a page's Markdown with its generated parts; `KeyError` names a part that does not exist."""
    return _MARK.sub(lambda mark: PARTS[mark[1]](), page)
