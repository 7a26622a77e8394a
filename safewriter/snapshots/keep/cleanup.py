"""Remove what no kept snapshot refers to. What was found is looked at again just before it goes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import StoreError
from safewriter.snapshots.keep.removal import remove_manifest
from safewriter.snapshots.keep.survey import Keeping, Kind, Leftover, PrefixSurvey, survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.read.source import Source

__all__ = ["Cleanup", "Removal", "cleanup"]

_PARALLEL: Final = 8


@dataclass(frozen=True, slots=True)
class Removal:
    """A leftover, and whether it is gone. `held`: why it stays after all; `error`: why it could not be removed."""

    leftover: Leftover
    removed: bool = False
    held: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What was found, and what became of it."""

    survey: PrefixSurvey
    removals: tuple[Removal, ...]
    dry_run: bool

    @property
    def has_failed(self) -> bool:
        """Whether something could not be removed."""
        return any(one.error is not None for one in self.removals)


def cleanup(
    source: Source,
    keeping: Keeping | None = None,
    *,
    dry_run: bool = False,
    seen: Callable[[int], None] = lambda _: None,
) -> Cleanup:
    """Remove manifests, shards and unfinished uploads that no kept snapshot needs; with `dry_run` only find them.

    Manifests go first, so nobody can go back to half a snapshot. Then everything is looked at a second time: what has
    been published meanwhile, or has begun to live, keeps its shards. Raises as `survey` does; what could not be removed
    is told.
    """
    keeping = keeping or Keeping()
    found = survey(source, keeping, seen)
    if dry_run:
        return Cleanup(found, tuple(map(Removal, found.leftovers)), dry_run)
    manifests = [one for one in found.leftovers if one.kind is Kind.MANIFEST]
    removals = [_tried(partial(_manifest_removed, source.store), one) for one in manifests]
    others = [one for one in found.leftovers if one.kind is not Kind.MANIFEST]
    if others:
        stay = frozenset(one.leftover.key for one in removals if not one.removed)
        again = survey(source, keeping, seen, prefixes=found.prefixes, stay=stay)
        still = set(map(_identity, again.leftovers))
        free = [one for one in others if _identity(one) in still]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            removals += pool.map(partial(_tried, partial(_removed, source.store)), free)
        removals += [Removal(one, held="it is needed now, or gone") for one in others if _identity(one) not in still]
    return Cleanup(found, tuple(removals), dry_run)


def _identity(one: Leftover) -> tuple[Kind, str]:
    return one.kind, one.key


def _manifest_removed(store: ObjectStore, one: Leftover) -> Removal:
    if remove_manifest(store, one.key):
        return Removal(one, removed=True)
    return Removal(one, held="it is current now")


def _removed(store: ObjectStore, one: Leftover) -> Removal:
    if one.upload is not None:
        store.abort(one.upload)
    else:
        store.delete(one.key)
    return Removal(one, removed=True)


def _tried(remove: Callable[[Leftover], Removal], one: Leftover) -> Removal:
    try:
        return remove(one)
    except StoreError as error:
        return Removal(one, error=str(error))
