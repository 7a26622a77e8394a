"""The promises that every state of an Iceberg table and its document must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import Status

if TYPE_CHECKING:
    from tests.model.state import State

__all__ = ["untrue"]


def untrue(state: State) -> str | None:
    """Return the promise that a state breaks, or None."""
    doc, shown = state.doc, state.table.shown()
    if len(shown) > 1:
        return "the batch is in the table twice"
    if doc is None:
        return None
    if doc.status is Status.ROLLED_BACK and shown:
        return "rolled_back, but the table holds the batch"
    if doc.status is Status.COMMITTED and doc.no_change and shown:
        return "no change, but the table holds one"
    if doc.status is Status.COMMITTED and not (doc.no_change or shown or state.table.taken):
        return "committed, but the table does not hold it"
    return None
