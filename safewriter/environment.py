"""Set environment variables of this process for the length of a `with` block."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["variables_set"]


@contextmanager
def variables_set(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables, and restore their values at the end of the block. For libraries that take no arguments."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
