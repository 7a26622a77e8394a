"""Settle a build of a snapshot: `_CURRENT` shows whether it was published, and fences it if it was not.

A guarded build leaves its attempt's name in `_CURRENT` when it publishes: its mark. A fence is that name in `fenced`: a
build whose compare-and-swap fails reads `_CURRENT` again, and gives up if it finds its name there.

The mark does not decide alone. `_CURRENT` also names the manifest, as current or in the history, and the manifest is
another object. If these witnesses contradict each other, `_CURRENT` was changed from outside, and an operator decides.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.errors import NotCommittedError
from safewriter.identity import attempts_in
from safewriter.objects.store import PreconditionFailed, StoreError, TooLarge, is_there
from safewriter.record.document import Status
from safewriter.snapshots.errors import ManifestParseError, ManifestPublishError
from safewriter.snapshots.format.current import CURRENT, CURRENT_MAX_BYTES, Current
from safewriter.snapshots.format.manifest import MANIFEST_MAX_BYTES, Manifest
from safewriter.snapshots.settle.leftovers import MANIFEST, BuildId
from safewriter.tables.table import Landed, Move, Table, Trace, UndecidableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.record.document import AttemptRecord, Checkpoint
    from safewriter.snapshots.format.current import Publication
    from safewriter.tables.session import BlockReport
    from safewriter.tables.table import Intent

__all__ = ["DECIDED_MS", "SnapshotTable", "name_of", "names_of"]

DECIDED_MS: Final = 6 * 86_400_000
"""How long a build may publish. `_CURRENT` keeps names for a day longer."""
_TRIES_MAX: Final = 50
_ONE_MANIFEST: Final = threading.Lock()
"""Read one manifest at a time: the sweeper settles several writes concurrently, in little memory."""


def name_of(attempt: AttemptRecord) -> str:
    """Return the attempt's name in `_CURRENT`."""
    return attempt.prefix.rstrip("-")


@dataclass(frozen=True)
class SnapshotTable(Table):
    """One prefix of snapshots. With a `rehearsal` a fence is appended to that list instead of being set."""

    store: ObjectStore
    clock: Clock
    may_go_on: Callable[[], bool]
    rehearsal: list[str] | None = None

    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Return committed if `_CURRENT` has the attempt's mark; else fence the attempt and return rolled_back."""
        if intent.nothing_sent:
            return Move(Status.ROLLED_BACK, f"{intent.cause}: nothing was published")
        landed = self._decide(document.attempt)
        if landed is None:
            return Move(Status.ROLLED_BACK, f"{intent.cause}: it was not published, and cannot be any more")
        return Move(Status.COMMITTED, f"{intent.cause} after it was published", landed)

    def confirm(self, document: Checkpoint, report: BlockReport) -> Move:
        """Return committed if the build was published. Raises `NotCommittedError` otherwise."""
        if not report.passed:
            raise NotCommittedError(f"the block has published no snapshot below {self.store.uri('')}")
        landed = self._decide(document.attempt)
        if landed is None:
            raise NotCommittedError(
                f"{self.store.uri(CURRENT)} does not know this build: its publication has not arrived, and cannot any"
                " more"
            )
        return Move(Status.COMMITTED, landed=landed)

    def _decide(self, attempt: AttemptRecord) -> Landed | None:
        """Return the publication; None if there is none and none can land any more."""
        name = name_of(attempt)
        for _ in range(_TRIES_MAX):
            if not self.may_go_on():
                break
            etag, current = self._read()
            if etag is None and attempt.version_before > 0:
                raise UndecidableError(f"{self.store.uri(CURRENT)} is gone, and with it the names of all builds")
            if (publication := self._published(current, name, attempt)) is not None:
                return _landed(publication)
            if self.clock() - attempt.started_ms > DECIDED_MS:
                raise UndecidableError(
                    f"{self.store.uri(CURRENT)} may have forgotten a build that began more than six days ago"
                )
            if name in current.fenced:
                return None
            if self.rehearsal is not None:
                self.rehearsal.append(f"PUT {self.store.uri(CURRENT)}: {name} is fenced")
                return None
            with suppress(PreconditionFailed):  # the publication may have been first
                self._fence(name, etag, current)
        raise StoreError(f"{self.store.uri(CURRENT)}: {name} could not be fenced off in time")

    def _published(self, current: Current, name: str, attempt: AttemptRecord) -> Publication | None:
        """Return an attempt's mark, or None. Raises `UndecidableError` if the witnesses contradict each other."""
        mark = current.published.get(name)
        key = BuildId.read(attempt.properties).manifest_key if "build" in attempt.properties else None
        if mark is not None:
            self._check_mark(current, name, mark, key)
        elif key is not None and current.names(self.store.uri(key)):
            raise UndecidableError(
                f"{self.store.uri(CURRENT)} names the manifest of {name}, and has not its mark, so somebody has changed"
                " it"
            )
        return mark

    def _check_mark(self, current: Current, name: str, mark: Publication, key: str | None) -> None:
        """Raise `UndecidableError` unless the mark's manifest is the build's, is or was current, and is there."""
        ref = mark.manifest_ref
        ref_key = ref.removeprefix(self.store.uri(""))
        if key not in (None, ref_key) or not (current.names(ref) or current.has_forgotten):
            problem = "neither is current nor was"
        elif ref_key == ref or not is_there(self.store, ref_key):
            problem = "is not there"
        else:
            return
        raise UndecidableError(
            f"{self.store.uri(CURRENT)} says that {name} has published {ref}, which {problem}. A clean-up may have"
            " removed it, or somebody has changed the mark"
        )

    def _fence(self, name: str, etag: str | None, current: Current) -> None:
        try:
            body = current.changed(fenced=current.with_fence(name, self.clock())).encode()
        except ManifestPublishError as error:
            raise UndecidableError(f"{name} cannot be fenced off: {error}") from error
        if etag is None:
            self.store.create(CURRENT, body)
        else:
            self.store.replace(CURRENT, body, etag=etag)

    def _read(self) -> tuple[str | None, Current]:
        try:
            stored = self.store.get(CURRENT, max_bytes=CURRENT_MAX_BYTES)
            if stored is None:
                return None, Current.absent(datetime.fromtimestamp(self.clock() / 1000, UTC))
            return stored.etag, Current.decode(stored.body, self.store.uri(CURRENT))
        except (ManifestParseError, TooLarge) as error:
            raise UndecidableError(str(error)) from error

    def remove_leftovers(
        self,
        document: Checkpoint,
        attempts: tuple[AttemptRecord, ...],
        earlier: tuple[AttemptRecord, ...] = (),
        *,
        dead_nonce: str | None = None,
    ) -> int:
        """Delete the shards of these builds that no manifest names, and the manifests of unpublished builds.

        The verdict says whether the last attempt was published. Unless it is `dead_nonce`, any other one is fenced
        first: the document may be false, and the build alive.
        """
        removed = 0
        for attempt in (*earlier, *attempts):
            if "build" not in attempt.properties:
                continue  # announced, but dead before its claim
            names = BuildId.read(attempt.properties)
            keep: frozenset[str] | None = None
            if document.status is Status.COMMITTED and attempt.epoch == document.epoch:
                current, ref = self._read()[1], self.store.uri(names.manifest_key)
                if not current.names(ref) and not current.has_forgotten:
                    raise UndecidableError(
                        f"{self.store.uri(CURRENT)} does not name {ref}, which the write's document calls published;"
                        " nothing is deleted"
                    )
                if current.sha256_of(ref) is None:
                    continue  # nothing tells which manifest was published; a clean-up of the prefix removes the rest
                keep = self._folders(current, ref)
                if keep is None:
                    continue  # the snapshot was removed since, and its shards with it
            self._check_unnamed(names, keep)
            if keep is None and attempt.nonce != dead_nonce and self._decide(attempt) is not None:
                raise UndecidableError(
                    f"{name_of(attempt)} is published, which its document denies; nothing is deleted"
                )
            now = datetime.fromtimestamp(self.clock() / 1000, UTC)
            names.end_record(self.store, now, published=keep is not None)
            removed += names.remove(self.store, keep, self.may_go_on)
        return removed

    def _check_unnamed(self, names: BuildId, keep: frozenset[str] | None) -> None:
        """Raise `UndecidableError` if a manifest is or was current that was never published by the verdict, or if
        another manifest of the run, which is or was current, names shards of the build that its own manifest does not:
        then its document is false. `keep`: the folders of its own manifest; None if it was not published.
        """
        current, ref = self._read()[1], self.store.uri(names.manifest_key)
        for other in {current.manifest_ref, *(past.manifest_ref for past in current.history)} - {ref, None}:
            if other is not None and other.endswith(f"_run_id={names.run_id}/manifest"):
                self._check_other(names, other, keep or frozenset(), current)
        if keep is None and current.names(ref):
            raise UndecidableError(
                f"{self.store.uri(CURRENT)} names {ref}, whose build is settled as not published; nothing of it is"
                " deleted. If it is current, roll back to another snapshot, or build again"
            )

    def _check_other(self, names: BuildId, ref: str, keep: frozenset[str], current: Current) -> None:
        root, folders = self.store.uri(""), self._folders(current, ref) or frozenset()
        if names.has_any(url.removeprefix(root) for url in folders - keep):
            raise UndecidableError(
                f"{ref} names shards of build {names.build}, of which the write's document says another manifest or"
                " none; nothing of it is deleted"
            )

    def _folders(self, current: Current, ref: str) -> frozenset[str] | None:
        """Return the folders of the shards that a manifest names; None if it is gone.

        Raises `UndecidableError` unless it can be read and is the one that was made current, as `_CURRENT` knows it.
        """
        with _ONE_MANIFEST:
            stored = self.store.get(ref.removeprefix(self.store.uri("")), max_bytes=MANIFEST_MAX_BYTES)
            if stored is None:
                return None
            try:
                manifest = Manifest.decode(stored.body, ref)
            except ManifestParseError as error:
                raise UndecidableError(str(error)) from error
        if current.sha256_of(ref) not in (None, manifest.sha256):
            raise UndecidableError(
                f"{ref} is not the manifest that was published: somebody has changed it. Nothing of its build is"
                " deleted; restore its earlier version"
            )
        return manifest.folders

    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        """Look for the names of a write's attempts, which `_CURRENT` keeps for a week."""
        _, current = self._read()
        epochs = names_of(current, write_key)
        published = {epoch: name for name, epoch in epochs.items() if name in current.published}
        if published:
            last = max(published)
            mark = current.published[published[last]]
            self._check_mark(current, published[last], mark, None)
            key = mark.manifest_ref.removeprefix(self.store.uri(""))
            return Trace(last, _landed(mark), mark.version - 1, succeeded=True, properties={MANIFEST: key})
        if self.clock() - since_ms > DECIDED_MS:
            raise UndecidableError(f"{self.store.uri(CURRENT)} may have forgotten a build that began so long ago")
        return Trace(max(epochs.values())) if epochs else None

    def trace_from(self, write_key: str, version: int) -> Trace:  # noqa: ARG002 - `_CURRENT` is read whole
        """Look for the names of a write that `_CURRENT` had a moment ago."""
        trace = self.trace(write_key, self.clock())
        if trace is None:
            raise UndecidableError(f"{self.store.uri(CURRENT)} has named this build, and does not any more")
        return trace


def names_of(current: Current, write_key: str) -> dict[str, int]:
    """Return the names of a write's attempts in `_CURRENT`, published or fenced, with their epochs."""
    return attempts_in((*current.published, *current.fenced), write_key)


def _landed(publication: Publication) -> Landed:
    return Landed(publication.version, publication.rows, publication.bytes)
