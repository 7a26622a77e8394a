"""The names of all metrics that handler and sweeper emit, read from their sources."""

from __future__ import annotations

import ast
import inspect

import handler.functions.sweeper
import handler.observability
from handler.outcome.state import State

__all__ = ["NAMESPACE", "emitted"]

NAMESPACE = handler.observability.NAMESPACE


def emitted() -> set[str]:
    """Return every text that may be the name of a metric."""
    names = {f"State{handler.observability._words(state.value)}" for state in State}
    names |= {f"Verdict{handler.observability._words(status)}" for status in ("committed", "rolled_back", "unknown")}
    for module in (handler.observability, handler.functions.sweeper):
        constants = (
            node.value for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Constant)
        )
        names |= {value for value in constants if isinstance(value, str)}
    return names
