"""The memory for tables' metadata: a bound for each table, and one large table at a time.

Metadata within the bound takes several times its text in memory, while a settler parses it and writes a fence: texts
with a wide character take four bytes for each, in the text, in its values and in the next text. The sweeper settles
several tables at once, so all but one of them are small.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from safewriter.bounds import space_bytes
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TEXT_MAX_BYTES", "check_space", "one_large"]

TEXT_MAX_BYTES: Final = 32 << 20
_SPACE_MAX_BYTES: Final = 128 << 20
"""The most memory for the metadata of one table: that of about 20,000 snapshots."""
_SMALL_BYTES: Final = 16 << 20
"""Eight tables of this size, with all copies, fit into the sweeper's memory beside a large one."""
_ONE_LARGE: Final = threading.Lock()


class _Held(threading.local):
    """What this thread has: `may`: a block of `one_large` that lets go again; `has`: the lock."""

    may = False
    has = False


_held: Final = _Held()


@contextmanager
def one_large() -> Iterator[None]:
    """Use metadata, of which `check_space` lets one thread at a time have a large one until the end of its block.

    A block in a block of the same thread changes nothing.
    """
    if _held.may:
        yield
        return
    _held.may = True
    try:
        yield
    finally:
        _held.may = False
        if _held.has:
            _held.has = False
            _ONE_LARGE.release()


def check_space(location: str, text: bytes) -> None:
    """Raise `StoreError` for metadata that would take more memory than a settler has for one table.

    In a block of `one_large` wait with large metadata until no other thread has such.
    """
    space = 0 if len(text) > TEXT_MAX_BYTES else space_bytes(text)
    if len(text) > TEXT_MAX_BYTES or space > _SPACE_MAX_BYTES:
        needed = f", which take {space:,} bytes of memory" if space else ""
        raise StoreError(
            f"the metadata {location} has {len(text):,} bytes{needed}: more than a settler reads; expire snapshots"
        )
    if space > _SMALL_BYTES and _held.may and not _held.has:
        _ONE_LARGE.acquire()
        _held.has = True
