"""The memory for tables' metadata: a bound for each table, and one large table at a time.

Metadata within the bound takes several times its text in memory, while a settler parses it and writes a fence: texts
with a wide character take four bytes for each, in the text, in its values and in the next text. The sweeper settles
several tables at once, so all but one of them are small.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from safewriter.bounds import space_bytes
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["TEXT_MAX_BYTES", "check_space", "keep", "kept", "one_large", "one_large_at_a_time"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

TEXT_MAX_BYTES: Final = 32 << 20
_SPACE_MAX_BYTES: Final = 128 << 20
"""The most memory for the metadata of one table: that of about 20,000 snapshots."""
_SMALL_BYTES: Final = 16 << 20
"""Eight tables of this size, with all copies, fit into the sweeper's memory beside a large one."""
_ONE_LARGE: Final = threading.Lock()
_LOOK_S: Final = 0.1
"""Seconds between two checks of a waiting thread whether it may go on."""


class _Held(threading.local):
    """Per thread: `has`: it holds the lock; `may_go_on`: the time check of its `one_large` block, which releases it;
    `kept`: what was read in that block.
    """

    may_go_on: Callable[[], bool] | None = None
    has = False

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}


class _Timed(Protocol):
    @property
    def may_go_on(self) -> Callable[[], bool]: ...


_Self = TypeVar("_Self", bound=_Timed)


_held: Final = _Held()


@contextmanager
def one_large(may_go_on: Callable[[], bool]) -> Iterator[None]:
    """Use metadata. `check_space` lets one thread at a time have a large one, until the end of its block; others wait
    while their `may_go_on` returns True.

    A block in a block of the same thread changes nothing.
    """
    if _held.may_go_on is not None:
        yield
        return
    _held.may_go_on = may_go_on
    try:
        yield
    finally:
        _held.may_go_on = None
        _held.kept.clear()
        if _held.has:
            _held.has = False
            _ONE_LARGE.release()


def kept(location: str, read: Callable[[], _R]) -> _R:
    """Return what `read` returns for a metadata file; in a block of `one_large` read the same file only once.

    Its content never changes: each metadata file has a name of its own.
    """
    found: _R | None = _held.kept.get(location)
    if found is None:
        keep(location, found := read())
    return found


def keep(location: str, table: object) -> None:
    """Let `kept` return this for a metadata file until the end of the block, or until another file is kept."""
    _held.kept.clear()
    if _held.may_go_on is not None:
        _held.kept[location] = table


def one_large_at_a_time(method: Callable[Concatenate[_Self, _P], _R]) -> Callable[Concatenate[_Self, _P], _R]:
    """Make a block of `one_large` of each call of a table's method, within the time of the table's settler."""

    @wraps(method)
    def held(self: _Self, /, *arguments: _P.args, **named: _P.kwargs) -> _R:
        with one_large(self.may_go_on):
            return method(self, *arguments, **named)

    return held


def check_space(location: str, text: bytes) -> None:
    """Raise `StoreError` for metadata that would take more memory than a settler has for one table.

    In a block of `one_large` wait with large metadata until no other thread has such; raise `StoreError` if the block's
    time is over before.
    """
    space = 0 if len(text) > TEXT_MAX_BYTES else space_bytes(text)
    if len(text) > TEXT_MAX_BYTES or space > _SPACE_MAX_BYTES:
        needed = f", which take {space:,} bytes of memory" if space else ""
        raise StoreError(
            f"the metadata {location} has {len(text):,} bytes{needed}: more than a settler reads; expire snapshots"
        )
    if space <= _SMALL_BYTES or _held.may_go_on is None or _held.has:
        return
    while not _ONE_LARGE.acquire(timeout=_LOOK_S):
        if not _held.may_go_on():
            raise StoreError(f"the metadata {location} is large: out of time while other large metadata is in use")
    _held.has = True
