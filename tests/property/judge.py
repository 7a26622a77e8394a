"""The invariants of a table's rows after any history, read from its log and the checkpoint bucket alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from safewriter.record.document import OPEN
from safewriter.tables.delta.undo import UNDOABLE_FEATURES

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from tests.property.operations import Operation
    from tests.support.lake import Lake

__all__ = ["Log", "check_metadata", "check_verdicts", "rows_at"]

Commit = list[dict[str, Any]]


class Log:
    """The table's log; each version is read only once."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._known: list[Commit] = []

    def commits(self) -> list[Commit]:
        while (found := self.lake.store.get(f"_delta_log/{len(self._known):020}.json")) is not None:
            self._known.append([json.loads(line) for line in found.body.splitlines()])
        return self._known

    def reverted(self) -> dict[int, int]:
        """Return each version that undoes another, with the undone one."""
        infos = ((version, _one(commit, "commitInfo")) for version, commit in enumerate(self.commits()))
        return {
            version: json.loads(info["userMetadata"])["safewriter"]["reverts"]
            for version, info in infos
            if info["operation"] == "SAFEWRITER REVERT"
        }

    def without_undo(self, version: int = -1) -> bool:
        """Return whether the table has, as of a version, a feature under which no undo is promised.

        The library `deltalake` adds one unasked, `variantType`, when it raises a table's protocol.
        """
        commits = self.commits()
        protocols = (_one(commit, "protocol") for commit in commits[: version % len(commits) + 1])
        protocol = [one for one in protocols if one][-1]
        features = {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}
        return not features <= UNDOABLE_FEATURES

    def operations(self, writes: Mapping[str, Operation], foreign: Mapping[int, Operation]) -> dict[int, Operation]:
        """Return each version's effect on rows: one of `writes`, by application id, or one of `foreign`."""
        found = dict(foreign)
        for version, commit in enumerate(self.commits()):
            if _one(commit, "commitInfo")["operation"] != "SAFEWRITER FENCE":
                owners = {action["txn"]["appId"] for action in commit if "txn" in action}
                found.update((version, writes[owner]) for owner in owners if owner in writes)
        return found


def rows_at(log: Log, base: Counter[int], operations: Mapping[int, Operation]) -> list[Counter[int]]:
    """Return the ids of each version: the versions up to it in order, without those that were undone by then."""
    reverted, count = log.reverted(), len(log.commits())
    gone: set[int] = set()
    found: list[Counter[int]] = []
    for version in range(count):
        if version in reverted:
            gone.add(reverted[version])
            now = base
            for earlier in range(version):
                now = operations[earlier].effect(now) if earlier in operations and earlier not in gone else now
        else:
            before = found[-1] if found else base
            now = operations[version].effect(before) if version in operations else before
        found.append(now)
    return found


def check_verdicts(log: Log, operations: Mapping[int, Operation]) -> None:
    """Check that a committed document has one live commit, and a rolled-back one none.

    If an undo was refused, the write did more than append, or an undo would contradict a later commit (other than an
    append), or a feature of the table forbids it.
    """
    gone = log.reverted().values()
    for document in log.lake.documents():
        if document.status in OPEN:
            continue
        live = [version for version in log.lake.live_versions(document.write_key) if version not in gone]
        assert len(live) == (1 if document.status == "committed" else 0), (document, live)
        if document.undo_refused is not None:
            behind = [one.kind for version, one in operations.items() if version > live[0]]
            does_more = operations[live[0]].kind != "append"
            contradicts = any(kind != "append" for kind in behind)
            assert does_more or contradicts or log.without_undo(live[0]), (document, behind)


def check_metadata(log: Log) -> None:
    """Check that each undo restores schema and properties as they were before the commit."""
    metadata: list[dict[str, Any]] = []
    for commit in log.commits():
        found = {key: value for key, value in _one(commit, "metaData").items() if value is not None}
        metadata.append(found or metadata[-1])  # deltalake writes defaults explicitly
    for version, undone in log.reverted().items():
        assert metadata[version] == metadata[undone - 1], (version, undone)


def _one(commit: Commit, kind: str) -> dict[str, Any]:
    return next((action[kind] for action in commit if kind in action), {})
