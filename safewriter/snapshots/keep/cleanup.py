"""Remove objects that no kept snapshot refers to. A second survey checks each of them just before it is removed."""

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
    """A leftover, and whether it was removed. `held`: why it was kept; `error`: why it could not be removed."""

    leftover: Leftover
    removed: bool = False
    held: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The result of a clean-up: what the survey found, and what was removed."""

    survey: PrefixSurvey
    removals: tuple[Removal, ...]
    dry_run: bool

    @property
    def has_failed(self) -> bool:
        """Whether a leftover could not be removed."""
        return any(removal.error is not None for removal in self.removals)


def cleanup(
    source: Source,
    keeping: Keeping | None = None,
    *,
    dry_run: bool = False,
    seen: Callable[[int], None] = lambda _: None,
) -> Cleanup:
    """Remove manifests, shards and unfinished uploads that no kept snapshot needs; with `dry_run` only find them.

    Manifests go first, so that no rollback can go to half a snapshot. Then a second survey keeps the shards of builds
    that have been published, or count as living, by then. Raises as `survey` does; the result reports an object that
    could not be removed.
    """
    keeping = keeping or Keeping()
    first = survey(source, keeping, seen)
    if dry_run:
        return Cleanup(first, tuple(map(Removal, first.leftovers)), dry_run)
    manifests = [leftover for leftover in first.leftovers if leftover.kind is Kind.MANIFEST]
    removals = [_tried(partial(_manifest_removed, source.store), leftover) for leftover in manifests]
    others = [leftover for leftover in first.leftovers if leftover.kind is not Kind.MANIFEST]
    if others:
        stay = frozenset(removal.leftover.key for removal in removals if not removal.removed)
        again = survey(source, keeping, seen, prefixes=first.prefixes, stay=stay)
        still = set(map(_identity, again.leftovers))
        free = [other for other in others if _identity(other) in still]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            removals += pool.map(partial(_tried, partial(_removed, source.store)), free)
        removals += [Removal(old, held="it is needed now, or gone") for old in others if _identity(old) not in still]
    return Cleanup(first, tuple(removals), dry_run)


def _identity(leftover: Leftover) -> tuple[Kind, str]:
    return leftover.kind, leftover.key


def _manifest_removed(store: ObjectStore, leftover: Leftover) -> Removal:
    if remove_manifest(store, leftover.key):
        return Removal(leftover, removed=True)
    return Removal(leftover, held="it is current now")


def _removed(store: ObjectStore, leftover: Leftover) -> Removal:
    if leftover.upload is not None:
        store.abort(leftover.upload)
    else:
        store.delete(leftover.key)
    return Removal(leftover, removed=True)


def _tried(remove: Callable[[Leftover], Removal], leftover: Leftover) -> Removal:
    try:
        return remove(leftover)
    except StoreError as error:
        return Removal(leftover, error=str(error))
