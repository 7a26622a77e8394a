"""Make an earlier snapshot current again: publish an existing manifest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import (
    ConfigValidationError,
    ManifestParseError,
    PublishConflictError,
    PublishCurrentError,
    ReaderStateError,
    ShardDamagedError,
)
from safewriter.snapshots.format.current import CURRENT, ManifestAt
from safewriter.snapshots.format.places import canonical_url
from safewriter.snapshots.keep.history import HistoryEntry, entries
from safewriter.snapshots.keep.removal import is_kept
from safewriter.snapshots.routing.routing import routing_of
from safewriter.snapshots.write.publish import Publisher

if TYPE_CHECKING:
    from safewriter.snapshots.format.current import Current
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.read.source import Source
    from safewriter.snapshots.write.publish import Base

__all__ = ["Rollback", "Target", "rollback"]

_NAMED_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Target:
    """The snapshot to go to, by exactly one of the fields. `back`: by how many published snapshots to go back."""

    manifest_ref: str | None = None
    run_id: str | None = None
    back: int | None = None

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.manifest_ref, self.run_id, self.back)) != 1:
            raise ConfigValidationError("name one snapshot: by manifest_ref, by run_id, or by back")
        if self.manifest_ref is not None:
            object.__setattr__(self, "manifest_ref", _url(self.manifest_ref))
        if self.back is not None and self.back < 1:
            raise ConfigValidationError(f"back is {self.back}; it must be 1 or more")


def _url(ref: str) -> str:
    try:
        return canonical_url(ref)
    except ValueError as error:
        raise ConfigValidationError(f"manifest_ref: {error}") from None


@dataclass(frozen=True, slots=True)
class Rollback:
    """The manifest that was current before, and the one that is current now; equal if there was nothing to do."""

    before: str
    after: str
    manifest: Manifest

    @property
    def is_change(self) -> bool:
        """Whether another snapshot is current now."""
        return self.before != self.after


def rollback(
    source: Source,
    target: Target,
    *,
    publisher: Publisher | None = None,
    dry_run: bool = False,
    forget_token: bool = False,
) -> Rollback:
    """Make a snapshot current, after a check that its manifest can be read and each shard is there with its size.

    `forget_token`: also remove the token of the last turn, because builds now use another lock, or the token was
    changed by hand. In this case the snapshot may be the current one.

    Raises `ReaderStateError` if there is no such snapshot, `ManifestParseError` or `ShardDamagedError` if it is
    incomplete, `PublishConflictError` if another one was published meanwhile, or a clean-up removes it,
    `PublishCurrentError` if it is unknown which one is current, or the current one is being removed. After the other
    errors the same snapshot is current as before.
    """
    publisher = publisher or Publisher(source.store)
    base = publisher.base()
    if base.current is None or base.current.manifest_ref is None:
        raise ReaderStateError(f"nothing was published below {source.store.uri('')} yet")
    before = base.current.manifest_ref
    ref = _ref_of(source, base.current, target)
    manifest = _whole(source, ref, base.current.sha256_of(ref))
    if forget_token:
        base = replace(base, current=base.current.changed(fencing_token=None))
    if dry_run or (ref == before and not forget_token):
        return Rollback(before, ref, manifest)
    if not _is_kept(source, ref):
        raise _removed(ref)
    publisher.point(ManifestAt(ref, manifest.sha256), manifest, base)
    try:
        if not _is_kept(source, ref):  # any clean-up that did not see `ref` current has put its notice by now
            _undo(source, publisher, base, ref, manifest)
            raise _removed(ref)
    except StoreError as error:
        raise PublishCurrentError(
            f"{ref} is current, but nobody knows whether a clean-up removes it: {error}. Read it; roll back to another"
            " one if it is gone",
            manifest_ref=ref,
        ) from error
    return Rollback(before, ref, manifest)


def _ref_of(source: Source, current: Current, target: Target) -> str:
    if target.manifest_ref is not None:
        return target.manifest_ref
    history = entries(source.store, current)
    if target.run_id is not None:
        return _of_run(source, [entry for entry in history if entry.run_id == target.run_id], target.run_id)
    return _before(source, _named(history), target.back or 0)


def _named(history: list[HistoryEntry]) -> list[HistoryEntry]:
    """Return the manifests that `_CURRENT` names. Whoever may write manifests can write one in a run's name, of any
    date, so any other becomes current only by its URL.
    """
    return [entry for entry in history if entry.is_current or entry.published_at is not None]


def _of_run(source: Source, of_run: list[HistoryEntry], run_id: str) -> str:
    if named := _named(of_run):
        return named[0].manifest_ref
    where = source.store.uri("")
    if not of_run:
        raise ReaderStateError(f"there is no manifest of a run {run_id!r} below {where}")
    found = ", ".join(entry.manifest_ref for entry in of_run[:_NAMED_MAX])
    raise ReaderStateError(
        f"{source.store.uri(CURRENT)} names no manifest of run {run_id!r}; name one by its URL: {found}"
    )


def _before(source: Source, named: list[HistoryEntry], back: int) -> str:
    at = next((number for number, entry in enumerate(named) if entry.is_current), None)
    if at is None:
        raise ReaderStateError(f"the current manifest is not below {source.store.uri('')}; name another one by its URL")
    if at + back >= len(named):
        raise ReaderStateError(
            f"{source.store.uri(CURRENT)} names {len(named) - at - 1} snapshots before the current one, not {back};"
            " name an older one by its URL"
        )
    return named[at + back].manifest_ref


def _whole(source: Source, ref: str, sha256: str | None) -> Manifest:
    manifest = source.manifest(ref, sha256)
    try:
        routing_of(manifest.sharding, manifest.num_dbs)
    except ValueError as error:
        raise ManifestParseError(f"{ref} is no manifest that this code can read: {error}") from error
    for damage in source.damage(manifest.shards):
        raise ShardDamagedError(f"{ref} is not whole: {damage}")
    return manifest


def _is_kept(source: Source, ref: str) -> bool:
    """Return whether a manifest is there, and no clean-up is removing it."""
    return is_kept(source.store, source.key_of(ref))


def _removed(ref: str) -> PublishConflictError:
    return PublishConflictError(
        f"a clean-up removes {ref}, so it does not become current; name another one, or let the clean-up end first",
        manifest_ref=ref,
    )


def _undo(source: Source, publisher: Publisher, base: Base, ref: str, manifest: Manifest) -> None:
    """Make the snapshot of `base` current again, unless another one is current by now.

    Raises `PublishCurrentError` if a clean-up also removes that snapshot, since it was not current for a moment.
    """
    now = publisher.base()
    if base.current is None or base.current.manifest_ref is None or now.current is None:
        raise AssertionError  # for the type checker: a rollback began with a current snapshot
    if now.current.manifest_ref != ref:
        return
    before = base.current.manifest_ref
    # `point` needs only the run's name of the manifest; the earlier manifest may be unreadable.
    at = ManifestAt(before, base.current.sha256_of(before))
    publisher.point(at, replace(manifest, run_id=base.current.run_id or ""), now)
    if not _is_kept(source, before):
        raise PublishCurrentError(
            f"{before} is current again, but a clean-up removes it or has, as it does {ref}: roll back to a"
            " snapshot that is there, which the history names",
            manifest_ref=before,
        )
