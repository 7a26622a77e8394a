"""A Delta log read and extended without a JVM: what recovery rests on.

Only versions after a known one are ever read, so the cost does not grow with the table's age.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.tables.delta.commit import FENCE, Commit, Mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.checkpoint import Checkpoints
    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.state import AttemptRecord, Checkpoint

__all__ = ["DeltaHistory", "RetentionGapError"]

_COMMIT: Final = re.compile(r"_delta_log/(\d{20})\.json")
_ENGINE: Final = "SoAL SafeWriter"
_SLOTS_MAX: Final = 100


class RetentionGapError(LookupError):
    """The log no longer holds every version that would have to be looked at, or it is another table's log."""


class DeltaHistory:
    """The log of one table; `store` is rooted at the table's path."""

    def __init__(self, store: ObjectStore, clock: Clock, *, may_go_on: Callable[[], bool] = lambda: True) -> None:
        self.store = store
        self._clock = clock
        self._may_go_on = may_go_on
        self._known: dict[int, Commit] = {}  # a version never changes, and settling looks at each several times

    def since(self, attempt: AttemptRecord) -> tuple[Commit, ...]:
        """Return every version after `attempt.version_before`, oldest first.

        Raises `RetentionGapError` if one is missing, or if the table is no longer the one that the attempt began on.
        """
        before = attempt.version_before
        start = "_delta_log/" if before < 0 else f"_delta_log/{before:020}"
        versions = [
            int(match.group(1))
            for listed in self.store.list("_delta_log/", start_after=start)
            if (match := _COMMIT.fullmatch(listed.key)) is not None
        ]
        if before >= 0:
            self._same_table(attempt, versions)
        after = [version for version in versions if version > before]
        if after != list(range(before + 1, before + 1 + len(after))):
            raise RetentionGapError(f"the log has lost versions after {before} (log retention): {after[:3]}")
        return tuple(self.read(version) for version in after)

    def _same_table(self, attempt: AttemptRecord, versions: list[int]) -> None:
        if not versions:
            raise RetentionGapError(
                f"version {attempt.version_before} is gone and nothing is after it: the table was dropped"
            )
        # A table that was dropped and recreated begins at version 0 with another id. An old log may have lost its
        # version 0.
        first = self.store.get(_key(0)) if attempt.table_id else None
        metadata = self._parsed(0, first.body).metadata if first is not None else None
        if metadata is not None and metadata.get("id") != attempt.table_id:
            raise RetentionGapError(
                f"the table was dropped and recreated: its id is {metadata.get('id')}, it was {attempt.table_id}"
            )

    def read(self, version: int) -> Commit:
        """Return one version; `StoreError` if it cannot be read, or if time has run out."""
        if version not in self._known:
            if not self._may_go_on():
                raise StoreError(f"{self.store.uri('_delta_log')}: out of time while reading version {version}")
            found = self.store.get(_key(version))
            if found is None:
                raise StoreError(f"{self.store.uri(_key(version))} is listed, but cannot be read")
            self._known[version] = self._parsed(version, found.body)
        return self._known[version]

    def _parsed(self, version: int, body: bytes) -> Commit:
        try:
            return Commit.parse(version, body)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"{self.store.uri(_key(version))} is no commit: {error!r}") from error

    # -- the fence ---------------------------------------------------------------------------------------------------

    def fence(self, document: Checkpoint, checkpoints: Checkpoints) -> None:
        """Make sure that no commit of the document's epoch or an earlier one can land any more.

        An empty commit with the write's transaction action takes the next slot: a commit that is still on its way finds
        its slot taken, and Delta refuses to rebase it behind a transaction of its own application id. The fence carries
        the dead epoch, so that the retry's own (one more) is not skipped by Delta's rule.
        """
        for _ in range(_SLOTS_MAX):
            commits = self.since(document.attempt)
            if any(commit.settles(document.write_key, document.epoch) for commit in commits):
                return
            head = commits[-1].version if commits else document.attempt.version_before
            creation: list[dict[str, Any]] = []
            if head < 0:
                note = checkpoints.close_creation(document.write_key, document.epoch)
                if note is None:
                    return
                if b'"metaData"' not in note:
                    raise RetentionGapError("the table that this attempt has appended to is gone")
                creation = [action for line in note.splitlines() if "note" not in (action := json.loads(line))]
            mark = Mark(document.write_key, document.epoch)
            body = [
                self.info(FENCE, mark, document.attempt, commits, creation),
                {"txn": {"appId": document.write_key, "version": document.epoch, "lastUpdated": self._clock()}},
                *creation,
            ]
            if self.append(head + 1, body):
                return
        raise StoreError(f"{self.store.uri('_delta_log')}: no free slot for a fence in {_SLOTS_MAX} tries")

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
        mark: Mark,
        attempt: AttemptRecord,
        commits: tuple[Commit, ...],
        creation: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Return the commitInfo action of a commit of our own; it must be the first line."""
        now_ms = self._clock()
        info: dict[str, Any] = {
            "timestamp": now_ms,
            "operation": operation,
            "operationParameters": {},
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "operationMetrics": {},
            "engineInfo": _ENGINE,
            "userMetadata": mark.to_text(),
            "txnId": str(uuid.uuid4()),
        }
        if _in_commit_timestamps(attempt, commits, creation or []):
            # Without it, or with one that goes back, DESCRIBE HISTORY fails and the table counts as damaged.
            info = {"inCommitTimestamp": max(now_ms, self._last_timestamp(attempt, commits) + 1), **info}
        return {"commitInfo": info}

    def _last_timestamp(self, attempt: AttemptRecord, commits: tuple[Commit, ...]) -> int:
        last = commits[-1] if commits else (self.read(attempt.version_before) if attempt.version_before >= 0 else None)
        return 0 if last is None else int(last.info.get("inCommitTimestamp", last.info.get("timestamp", 0)))

    # -- clean-up ----------------------------------------------------------------------------------------------------

    def remove_files(
        self, prefixes: tuple[str, ...], commits: tuple[Commit, ...], may_go_on: Callable[[], bool]
    ) -> int:
        """Delete the data files that bear one of the prefixes and that no version refers to; return how many went.

        Only versions after the first attempt began can refer to them, and those are `commits`. Unfinished multipart
        uploads of such files are aborted. Raises `StoreError` if the work could not be finished, also when `may_go_on`
        says no.
        """
        referred = set().union(*(commit.paths for commit in commits))
        removed = 0
        for listed in self.store.list(""):
            if not may_go_on():
                raise StoreError(f"{self.store.uri('')}: out of time while cleaning up, {removed} files removed so far")
            if _is_data_file(listed.key, prefixes) and listed.key not in referred:
                self.store.delete(listed.key)
                removed += 1
        for upload in self.store.uploads(""):
            if _is_data_file(upload.key, prefixes):
                self.store.abort(upload)
        return removed


def _is_data_file(key: str, prefixes: tuple[str, ...]) -> bool:
    return not key.startswith("_delta_log/") and key.rsplit("/", 1)[-1].startswith(prefixes)


def _key(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def _in_commit_timestamps(attempt: AttemptRecord, commits: tuple[Commit, ...], creation: list[dict[str, Any]]) -> bool:
    settings = dict(attempt.properties)
    for metadata in (*(commit.metadata for commit in commits), *(action.get("metaData") for action in creation)):
        if metadata is not None:
            settings = metadata.get("configuration", {})
    return settings.get("delta.enableInCommitTimestamps") == "true"
