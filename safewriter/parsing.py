"""Parse JSON from outside: a text that is nested too deeply for Python's parser counts as invalid, too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parsed"]


def parsed(text: str | bytes, *, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a JSON text; `ValueError` if it is no JSON, or nested more deeply than Python can follow.

    Before Python 3.12 the depth counts against the caller's own recursion limit, later against one of C's.
    """
    try:
        return json.loads(text, object_hook=object_hook)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
