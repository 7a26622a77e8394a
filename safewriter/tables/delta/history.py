"""Read and extend a Delta log without a JVM; recovery rests on it.

Only versions after a known one are ever read, so the cost does not grow with the table's age.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import UUID

from safewriter.bounds import LONG_MAX, whole
from safewriter.entropy import unique_id
from safewriter.identity import is_file_of
from safewriter.objects.store import PreconditionFailed, StoreError, TooLarge, paced
from safewriter.parsing import parsed
from safewriter.tables.delta.commit import HELD_MAX_BYTES, RESTORE, Commit, Signature, first_line, is_on
from safewriter.tables.table import UndecidableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safewriter.deadline import Clock
    from safewriter.objects.store import ListedObject, ObjectStore
    from safewriter.record.document import AttemptRecord

__all__ = ["DeltaHistory", "has_log"]

_COMMIT: Final = re.compile(r"_delta_log/(\d{20})\.json")
_ENGINE: Final = "SoAL SafeWriter"
_TOLD: Final = {"protocol": "protocol", "metaData": "metadata"}
"""The actions that a version's checksum repeats, and its names of them."""
_WHOLE_MAX_BYTES: Final = 1 << 20
_COMMIT_MAX_BYTES: Final = 256 << 20
_HINT_MAX_BYTES: Final = 64 << 10
_FEW: Final = 8
_BACK: Final = (0, 10, 100, 1000, 10_000)
"""How many versions before a known one a listing begins, until it finds one that is old enough. A listing of the whole
log comes last: it grows with the table's age."""
_PARALLEL: Final = 16
"""The requests at a time for a long log."""
_NO_COMMIT: Final = (ValueError, TypeError, KeyError, AttributeError)
"""What parsing raises for a version, or what stands beside it, that no writer of Delta has written so."""


@dataclass(slots=True)
class _Listing:
    """A listing of the versions after `before`: `head` is the last one before a gap, `lost` the next one after the gap.
    `first` is the first that was listed. Nothing else is kept: a folder may have millions of names.
    """

    before: int
    head: int
    first: tuple[int, ListedObject] | None = None
    lost: int | None = None


class DeltaHistory:
    """The log of one table; `store` is rooted at the table's path."""

    def __init__(self, store: ObjectStore, clock: Clock, *, may_go_on: Callable[[], bool] = lambda: True) -> None:
        self.store = store
        self._clock = clock
        self._may_go_on = may_go_on
        self._known: dict[int, Commit] = {}  # a version never changes, and settling reads each several times
        self._held_bytes = 0
        self._checksums: dict[int, Commit | None] = {}
        self._outlines: dict[int, Commit | None] = {}

    def since(self, attempt: AttemptRecord) -> tuple[Commit, ...]:
        """Return every version after `attempt.version_before`, oldest first.

        Raises `UndecidableError` if one is missing, or if the table is no longer the one that the attempt began on.
        """
        return self.since_moment(attempt)[0]

    def since_moment(self, attempt: AttemptRecord) -> tuple[tuple[Commit, ...], datetime | None]:
        """Return the same, and the moment when the store received the version before them; None if it is not known,
        as there is none, or it is gone.
        """
        listing = self._list_since(attempt)
        first = listing.first
        moment = first[1].last_modified if first is not None and first[0] == listing.before else None
        return self._read(listing), moment

    def _list_since(self, attempt: AttemptRecord) -> _Listing:
        before = attempt.version_before
        # -1 sorts before every version: a minus sign sorts before the digits.
        listing = self._list(before, f"_delta_log/{before:020}")
        if before >= 0:
            _check_same_table(attempt, listing)
        return _whole(listing, f"version {before + 1}")

    def since_ms(self, time_ms: int, *, at_least: int = 0, near: int = -1) -> tuple[Commit, ...]:
        """Return every version that the store has received since a time (epoch milliseconds), and `at_least` so many of
        the last ones, as far as the log has them.

        `near`: a version that was probably received about then; a wrong one costs only requests. Raises
        `UndecidableError` if the log does not reach back to the time. One that begins with version 0 is whole.
        """
        listing = self._list_since_ms(time_ms, near)
        if (before := max(listing.head - at_least, -1)) < listing.before:
            listing = self._list_from(before + 1)
            if listing.first is not None and listing.first[0] == listing.lost:  # log retention
                listing = self._list_from(listing.lost)
        return self._read(_whole(listing, _text_of(time_ms)))

    def _list_from(self, version: int) -> _Listing:
        before = version - 1
        return self._list(before, f"_delta_log/{before:020}.json")

    def _list_since_ms(self, time_ms: int, near: int = -1) -> _Listing:
        second_ms = time_ms // 1000 * 1000  # S3 dates objects by the second: one of the time's own second may be later
        # Begin with the last versions, and go back until one is older than the time: the log is longer.
        start = near if near >= 0 else self._checkpoint()
        for back in _BACK:
            if start - back < 0:
                break
            recent = self._list(-1, f"_delta_log/{start - back:020}", older_than_ms=second_ms)
            if recent.before >= 0:
                return _whole(recent, _text_of(time_ms))
        listing = self._list(-1, older_than_ms=second_ms)
        if listing.first is None and has_log(self.store):
            raise UndecidableError(f"{self.store.uri('_delta_log')} holds no version (log retention)")
        return _whole(listing, _text_of(time_ms))

    def of_write(self, write_key: str, attempt: AttemptRecord) -> tuple[Commit, ...]:
        """Return every version since an attempt began that names the write or files of it, with no other files.

        If the table is no longer the one that the attempt began on, the versions since that time count. Raises
        `UndecidableError` if one is missing. Of a long log several versions are read at a time.
        """
        try:
            listing = self._list_since(attempt)
        except UndecidableError:
            listing = self._list_since_ms(attempt.started_ms)
        versions = range(listing.before + 1, listing.head + 1)
        found: list[Commit] = []
        held_bytes = 0

        def read(version: int) -> Commit:
            return self._read_of(version, write_key, HELD_MAX_BYTES - held_bytes)

        with ThreadPoolExecutor(_PARALLEL) as pool:
            for begin in range(0, len(versions), _PARALLEL):
                some = versions[begin : begin + _PARALLEL]
                for commit in pool.map(read, some) if len(versions) > _PARALLEL else map(read, some):
                    if commit.paths or write_key in commit.owners or commit.info.get("operation") == RESTORE:
                        found.append(commit)
                        held_bytes += commit.held_bytes
        return tuple(found)

    def _read_of(self, version: int, write_key: str, most_bytes: int) -> Commit:
        def is_ours(path: str) -> bool:
            return is_file_of(unquote(path).rpartition("/")[2], write_key)

        return self._parsed(version, self._listed(version), most_bytes, is_ours)

    def from_version(self, version: int) -> tuple[Commit, ...]:
        """Return a version and all that follow; raise `UndecidableError` if any of them is missing."""
        listing = self._list_from(version)
        if listing.first is None or listing.first[0] != version:
            raise UndecidableError(f"{self.store.uri(_key(version))} is gone: the table was dropped or replaced")
        return self._read(_whole(listing, f"version {version}"))

    def _list(self, before: int, start_after: str = "", *, older_than_ms: int = -1) -> _Listing:
        """List the log from a version on; `before` moves up to the last version older than `older_than_ms`."""
        listing = _Listing(before, before)
        for entry in paced(self.store.list("_delta_log/", start_after=start_after), self._check_time):
            match = _COMMIT.fullmatch(entry.key)
            if match is None:
                continue
            version = int(match.group(1))
            listing.first = listing.first or (version, entry)
            if entry.last_modified.timestamp() * 1000 < older_than_ms:
                listing.before = listing.head = version
                listing.lost = None
            elif version == listing.head + 1:
                listing.head = version
            elif version > listing.head and listing.lost is None:
                listing.lost = version
        return listing

    def _check_time(self) -> None:
        if not self._may_go_on():
            raise StoreError(f"{self.store.uri('_delta_log')}: out of time while listing it")

    def _checkpoint(self) -> int:
        """Return the version of the last checkpoint from Delta's hint; -1 if there is no readable hint."""
        try:
            hint = self.store.get("_delta_log/_last_checkpoint", max_bytes=_HINT_MAX_BYTES)
        except TooLarge:
            return -1
        try:
            version = -1 if hint is None else whole(parsed(hint.body)["version"])
        except (ValueError, TypeError, KeyError):
            return -1
        return max(version, -1)

    def _read(self, listing: _Listing) -> tuple[Commit, ...]:
        """Return the listed versions. Of a long log several are fetched at a time, and parsed one after the other."""
        versions = range(listing.before + 1, listing.head + 1)
        if len(versions) <= _PARALLEL:
            return tuple(self.read(version) for version in versions)
        commits: list[Commit] = []
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for begin in range(0, len(versions), _PARALLEL):
                some = versions[begin : begin + _PARALLEL]
                for version, body in zip(some, pool.map(self._small_body, some), strict=True):
                    commits.append(self.read(version) if body is None else self._take(version, body))
        return tuple(commits)

    def _small_body(self, version: int) -> bytes | None:
        """Return a commit that is neither known nor large; a large one is streamed, and its turn is not yet."""
        if version in self._known:
            return None
        self._check_going_on(version)
        try:
            stored = self.store.get(_key(version), max_bytes=_WHOLE_MAX_BYTES)
        except TooLarge:
            return None
        return None if stored is None else stored.body

    def further(self, commits: tuple[Commit, ...], before: int) -> tuple[Commit, ...]:
        """Return `commits`, which may be empty after `before`, and the versions that were added after them.

        They are read by name until one is missing: on a busy table nothing is listed again.
        """
        versions = list(commits)
        while True:
            following = versions[-1].version + 1 if versions else before + 1
            commit = self.find(following)
            if commit is None:
                return tuple(versions)
            versions.append(commit)

    def read(self, version: int, body: bytes | None = None) -> Commit:
        """Return one version; raise `StoreError` if it cannot be read, or if time has run out. `body`: its content, if
        the caller has read it.
        """
        if body is not None:
            return self._parsed(version, body)
        commit = self.find(version)
        if commit is None:
            raise self._gone(version)
        return commit

    def _gone(self, version: int) -> StoreError:
        return StoreError(f"{self.store.uri(_key(version))} is listed, and is gone")

    def _listed(self, version: int) -> bytes | Iterator[bytes]:
        if (body := self._body(version)) is None:
            raise self._gone(version)
        return body

    def find(self, version: int) -> Commit | None:
        """Return one version; None if there is none."""
        if version not in self._known:
            body = self._body(version)
            if body is None:
                return None
            return self._take(version, body)
        return self._known[version]

    def outline(self, version: int) -> Commit | None:
        """Return a version without its files, which take no memory; None if there is none, or none that a settler can
        read.
        """
        if version in self._known:
            return self._known[version]
        if version not in self._outlines:
            try:
                body = self._body(version)
                self._outlines[version] = (
                    None if body is None else Commit.parse(version, body, only=lambda _path: False)
                )
            except (TooLarge, *_NO_COMMIT):
                self._outlines[version] = None
        return self._outlines[version]

    def checksum(self, version: int) -> Commit | None:
        """Return protocol and metadata of the whole table at a version, as Spark tells them beside it; None if it does
        not, or not so that a settler can read it.
        """
        if version not in self._checksums:
            self._check_going_on(version)
            self._checksums[version] = self._checksum(version)
        return self._checksums[version]

    def _checksum(self, version: int) -> Commit | None:
        try:
            stored = self.store.get(_key(version).removesuffix(".json") + ".crc", max_bytes=_WHOLE_MAX_BYTES)
            told = {} if stored is None else parsed(stored.body)
            lines = [json.dumps({kind: told[name]}) for kind, name in _TOLD.items()]
            return Commit.parse(version, "\n".join(lines).encode())
        except (TooLarge, *_NO_COMMIT):
            return None

    def _take(self, version: int, body: bytes | Iterable[bytes]) -> Commit:
        commit = self._parsed(version, body)
        self._held_bytes += commit.held_bytes
        self._known[version] = commit
        return commit

    def _body(self, version: int) -> bytes | Iterator[bytes] | None:
        """Return a commit as a whole if it is small, as most are, or else in blocks."""
        self._check_going_on(version)
        key = _key(version)
        try:
            stored = self.store.get(key, max_bytes=_WHOLE_MAX_BYTES)
        except TooLarge:
            return None if (blocks := self.store.stream(key)) is None else self._bounded(key, blocks)
        return None if stored is None else stored.body

    def _check_going_on(self, version: int) -> None:
        if not self._may_go_on():
            raise StoreError(f"{self.store.uri('_delta_log')}: out of time while reading version {version}")

    def _bounded(self, key: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for block in blocks:
            size += len(block)
            if size > _COMMIT_MAX_BYTES:
                raise TooLarge(self.store.uri(key), size, _COMMIT_MAX_BYTES)
            if not self._may_go_on():
                raise StoreError(f"{self.store.uri(key)}: out of time after {size:,} bytes of it")
            yield block

    def _parsed(
        self,
        version: int,
        body: bytes | Iterable[bytes],
        most_bytes: int | None = None,
        only: Callable[[str], bool] | None = None,
    ) -> Commit:
        most_bytes = HELD_MAX_BYTES - self._held_bytes if most_bytes is None else most_bytes
        try:
            return Commit.parse(version, body, most_bytes=most_bytes, only=only)
        except _NO_COMMIT as error:
            raise StoreError(
                f"{self.store.uri(_key(version))} is no commit that a settler can read: {error!r}"
            ) from error

    # -- writing -----------------------------------------------------------------------------------------------------

    def append(self, version: int, actions: list[dict[str, Any]]) -> bool:
        """Write a version if its slot is free; False if it is not."""
        lines = b"".join(
            json.dumps(action, separators=(",", ":"), ensure_ascii=False).encode() + b"\n" for action in actions
        )
        try:
            self.store.create(_key(version), lines)
        except PreconditionFailed:
            return False
        return True

    def info(
        self,
        operation: str,
        signature: Signature,
        attempt: AttemptRecord,
        commits: tuple[Commit, ...],
        creation: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Return the commitInfo action of a commit of our own; it must be the first line.

        The last version tells whether the table has in-commit timestamps, not what a document says of the table: a
        commit without one would end all of Delta's.
        """
        now_ms = self._clock()
        info: dict[str, Any] = {
            "timestamp": now_ms,
            "operation": operation,
            "operationParameters": {},
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "operationMetrics": {},
            "engineInfo": _ENGINE,
            "userMetadata": signature.to_text(),
            "txnId": str(UUID(unique_id(), version=4)),
        }
        last_ms = _asked_for_ms(creation) if creation else self._last_ms(attempt, commits)
        if last_ms is not None:
            # One that goes back damages the table, too. After the largest `long` repeat that: Delta reads an equal
            # timestamp, but no larger number.
            info = {"inCommitTimestamp": max(now_ms, min(last_ms + 1, LONG_MAX)), **info}
        return {"commitInfo": info}

    def _last_ms(self, attempt: AttemptRecord, commits: tuple[Commit, ...]) -> int | None:
        """Return the in-commit timestamp of the last version; None if it has none."""
        last = commits[-1] if commits else self._first_action(attempt.version_before)
        stamp = last.info.get("inCommitTimestamp")
        return None if stamp is None else int(stamp)

    def _first_action(self, version: int) -> Commit:
        """Return the first action of a version, which may be large: it has the in-commit timestamp, if there is one."""
        read = self._known.get(version) or self._outlines.get(version)
        return read or self._parsed(version, first_line(self._listed(version)))


def has_log(store: ObjectStore) -> bool:
    """Return whether a path has objects of a log. Markers of folders are none: Delta makes them before a creation."""
    return any(not entry.key.endswith("/") for entry in store.list("_delta_log/", at_once=_FEW))


def _whole(listing: _Listing, back_to: str) -> _Listing:
    """Return a listing without a gap; raise `UndecidableError` for any other."""
    if listing.lost is None:
        return listing
    if listing.first is not None and listing.first[0] == listing.lost:
        raise UndecidableError(
            f"the log does not reach back to {back_to} (log retention): the next one is {listing.lost}"
        )
    raise UndecidableError(
        f"the log has lost versions after {listing.head} (log retention): the next one is {listing.lost}"
    )


def _text_of(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a document may say any number
        return f"{time_ms} ms"


def _check_same_table(attempt: AttemptRecord, listing: _Listing) -> None:
    """Raise if the version that the attempt began on is another object now; it may be gone (log retention).

    The table's id proves nothing: CREATE OR REPLACE gives another one to the same table.
    """
    if listing.first is None:
        raise UndecidableError(
            f"version {attempt.version_before} is gone and nothing is after it: the table was dropped"
        )
    version, begun_on = listing.first
    if version != attempt.version_before or attempt.modified_ms is None:
        return
    # S3 dates objects by the second.
    if int(begun_on.last_modified.timestamp()) != attempt.modified_ms // 1000:
        raise UndecidableError(
            f"the table was dropped and recreated: its version {attempt.version_before}, of"
            f" {begun_on.last_modified:%Y-%m-%d %H:%M:%S} UTC, is not the one that this attempt began on"
        )


def _key(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def _asked_for_ms(creation: list[dict[str, Any]]) -> int | None:
    """Return the timestamp that a new table's first one follows; None if the table asks for none."""
    settings = [action["metaData"].get("configuration") or {} for action in creation if "metaData" in action]
    return 0 if any(is_on(one, "delta.enableInCommitTimestamps") for one in settings) else None
