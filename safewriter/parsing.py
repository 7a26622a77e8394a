"""Parse untrusted JSON: a text that is nested too deeply for Python's parser counts as invalid, too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parsed"]

_BEFORE_VALUES: Final = "[{,"


def parsed(
    text: str | bytes,
    *,
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    values_max: int | None = None,
) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a JSON text; raise `ValueError` if it is no JSON, or nested more deeply than Python can follow.

    Before Python 3.12 the depth counts against the caller's own recursion limit, later against one of C's.
    `values_max`: raise `ValueError` for more values; each takes about 80 bytes of memory, however short its text is.
    Commas and brackets inside of texts count, too.
    """
    if values_max is not None:
        counts = (text.count(mark) if isinstance(text, str) else text.count(mark.encode()) for mark in _BEFORE_VALUES)
        if sum(counts) > values_max:
            raise ValueError(f"has more than {values_max:,} values")
    try:
        return json.loads(text, object_hook=object_hook)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
