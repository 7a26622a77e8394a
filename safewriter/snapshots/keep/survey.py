"""Find the objects below a prefix that no kept snapshot refers to. A survey changes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ConfigValidationError, ManifestParseError
from safewriter.snapshots.format.places import checked_segment, is_segment
from safewriter.snapshots.format.shard_file import FILE_NAME
from safewriter.snapshots.keep.build_records import recorded_builds
from safewriter.snapshots.keep.history import MANIFESTS, entries
from safewriter.snapshots.keep.removal import notices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.objects.store import ListedObject, Upload
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.keep.history import HistoryEntry
    from safewriter.snapshots.read.source import Source

__all__ = ["Keeping", "Kind", "Leftover", "PrefixSurvey", "survey"]

_RECORDS: Final = "runs"
"""The default folder of the build records."""

_OF_BUILD: Final = re.compile(
    r"(?P<folder>[^/]+/run_id=(?P<run>[^/]+)/[^/]+/attempt=[0-9]+(?:-(?P<build>[^/-]+)-[^/]+)?)/"
    # The folder of a task's attempt may hold any file; other data may also be partitioned by a mere number.
    r"(?:(?<=-[0-9a-f]{16}-[0-9a-f]{16}/).+"
    rf"|{re.escape(FILE_NAME)}|(?:wal|compacted)/[^/]+\.sst|manifest/[0-9]+\.manifest|compactions/[0-9]+\.compactions)",
    re.DOTALL,
)
"""The key of an object that a build writes. Manifests and records only say below which prefixes to look for such keys,
and those must be single segments: a forged manifest must not make a clean-up delete other data. Objects with other keys
stay.
"""


class Kind(StrEnum):
    """The kind of a leftover."""

    MANIFEST = "manifest"
    SHARD = "shard"
    UPLOAD = "upload"
    NOTICE = "mark"
    """A removal notice that a dead clean-up has left beside a kept manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What to keep, beside the current snapshot and living builds.

    `last`: how many of the newest published snapshots. `age`: everything that is younger, by the store's clock; it must
    be longer than a build without a record may pause. `run_registry_prefix`: the folder of the build records.
    """

    last: int = 3
    age: timedelta = timedelta(days=1)
    run_registry_prefix: str = _RECORDS

    def __post_init__(self) -> None:
        if self.last < 1:
            raise ConfigValidationError(f"last is {self.last}; it must be 1 or more: the current snapshot stays")
        if self.age < timedelta(0):
            raise ConfigValidationError(f"age is {self.age}; it must not be negative")
        checked_segment("run_registry_prefix", self.run_registry_prefix)


@dataclass(frozen=True, slots=True)
class Leftover:
    """An object that may be removed, and why. `upload`: the unfinished upload, if it is one."""

    kind: Kind
    key: str
    bytes: int
    since: datetime
    why: str
    upload: Upload | None = None


@dataclass(frozen=True, slots=True)
class PrefixSurvey:
    """What may be removed, manifests first. `kept`: the manifests that stay; `living`: the runs that are alive;
    `young`: the number of unreferenced objects that are too young; `prefixes`: the prefixes of the shards;
    `unreadable`: the keys of unreadable records, whose runs count as living.
    """

    now: datetime
    leftovers: tuple[Leftover, ...]
    kept: tuple[str, ...]
    living: frozenset[str]
    young: int
    prefixes: frozenset[str]
    unreadable: tuple[str, ...]


@dataclass(slots=True)
class _Build:
    """The objects of one build that no kept snapshot refers to, and the time of its youngest object."""

    newest: datetime
    left: list[ListedObject] = field(default_factory=list)


def survey(
    source: Source,
    keeping: Keeping,
    seen: Callable[[int], None] = lambda _: None,
    *,
    prefixes: frozenset[str] = frozenset({"shards"}),
    stay: frozenset[str] = frozenset(),
) -> PrefixSurvey:
    """Find the leftovers below a prefix. `seen` gets the number of shards' objects listed so far.

    `prefixes`: where to look for shards, beside the prefixes that manifests and records name. `stay`: the keys of
    manifests that are kept in any case.

    Raises `ReaderStateError` without `_CURRENT`, `ManifestParseError` if it or a kept manifest cannot be read, since
    its references are unknown then, `ConfigValidationError` if `keeping` names a folder without a record, and
    `StoreError`.
    """
    pointer, current = source.current()
    old = pointer.server_date - keeping.age
    builds = recorded_builds(source.store, keeping.run_registry_prefix, pointer.server_date)
    if builds.count == 0 and keeping.run_registry_prefix != _RECORDS:
        # A misspelt folder would make all builds that live look dead.
        where = source.store.uri(f"{keeping.run_registry_prefix}/")
        raise ConfigValidationError(
            f"run_registry_prefix: no build has a record in {where}; name the folder in which builds keep theirs, or"
            f" leave the option out if they keep none (it is {_RECORDS!r} then)"
        )
    history = entries(source.store, current)
    last = [entry.key for entry in history if entry.is_published][: keeping.last]
    kept, leftovers = [], []
    for entry in history:
        is_needed = entry.is_current or entry.key in last or entry.key in stay
        if is_needed or entry.written_at >= old or entry.run_id in builds.living:
            kept.append(entry)
        else:
            leftovers.append(_manifest(entry, source, keeping.last))
    refs = {entry.manifest_ref for entry in kept} | ({current.manifest_ref} if current.manifest_ref else set())
    manifests = [source.manifest(ref, current.sha256_of(ref)) for ref in sorted(refs)]
    segments = {manifest.shard_prefix for manifest in manifests} | _prefixes(source, leftovers)
    prefixes |= builds.shard_prefixes | set(filter(is_segment, segments))
    leftovers += _notices(source, kept, old)
    shards, young = _shards(source, prefixes, _references(source, manifests), builds.living, old, seen)
    leftovers += shards
    leftovers += _uploads(source, prefixes, builds.living, old)
    at = pointer.server_date
    return PrefixSurvey(at, tuple(leftovers), tuple(sorted(refs)), builds.living, young, prefixes, builds.unreadable)


def _references(source: Source, manifests: list[Manifest]) -> frozenset[str]:
    """Return the folders of shards that manifests refer to, as keys of the store."""
    root = source.store.uri("")
    return frozenset(shard.db_url.rstrip("/").removeprefix(root) for manifest in manifests for shard in manifest.shards)


def _manifest(entry: HistoryEntry, source: Source, last: int) -> Leftover:
    why = f"it is not among the last {last}" if entry.is_published else "it was never current"
    size = next((manifest.size for manifest in source.store.list(entry.key) if manifest.key == entry.key), 0)
    return Leftover(Kind.MANIFEST, entry.key, size, entry.written_at, why)


def _prefixes(source: Source, leftovers: list[Leftover]) -> set[str]:
    """Return the shard prefixes of the manifests to remove; skip a manifest that cannot be read."""
    prefixes = set()
    for leftover in leftovers:
        try:
            prefixes.add(source.manifest(source.store.uri(leftover.key)).shard_prefix)
        except ManifestParseError:
            continue
    return prefixes


def _notices(source: Source, kept: list[HistoryEntry], old: datetime) -> Iterator[Leftover]:
    notices = tuple(notices_of(entry.key) for entry in kept)
    for notice in source.store.list(MANIFESTS):
        if notice.key.startswith(notices) and notice.last_modified < old:
            yield Leftover(
                Kind.NOTICE, notice.key, notice.size, notice.last_modified, "the clean-up that set it is dead"
            )


def _shards(
    source: Source,
    prefixes: frozenset[str],
    referred: frozenset[str],
    living: frozenset[str],
    old: datetime,
    seen: Callable[[int], None],
) -> tuple[list[Leftover], int]:
    """Return the unreferenced objects of builds that have ended, and the number of those that are too young.

    The youngest object decides for the whole build: while it is young, the build may still publish its first objects.
    """
    builds: dict[tuple[str, str], _Build] = {}
    count = 0
    for prefix in sorted(prefixes):
        for shard in source.store.list(f"{prefix}/run_id="):
            count += 1
            seen(count)
            match = _OF_BUILD.fullmatch(shard.key)
            if match is None or match["run"] in living:
                continue
            build = builds.setdefault((match["run"], match["build"] or ""), _Build(shard.last_modified))
            build.newest = max(build.newest, shard.last_modified)
            if match["folder"] not in referred:
                build.left.append(shard)
    why = "no kept snapshot refers to it"
    leftovers = [
        Leftover(Kind.SHARD, shard.key, shard.size, shard.last_modified, why)
        for build in builds.values()
        if build.newest < old
        for shard in build.left
    ]
    return leftovers, sum(len(build.left) for build in builds.values()) - len(leftovers)


def _uploads(source: Source, prefixes: frozenset[str], living: frozenset[str], old: datetime) -> Iterator[Leftover]:
    for prefix in sorted(prefixes):
        for upload in source.store.uploads(f"{prefix}/run_id="):
            since, match = upload.initiated, _OF_BUILD.fullmatch(upload.key)
            if since is not None and since < old and match is not None and match["run"] not in living:
                yield Leftover(Kind.UPLOAD, upload.key, 0, since, "it was never finished", upload)
