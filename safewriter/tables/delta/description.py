"""What a Delta table is by its own log. A document that tells its features and properties may be false."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.record.document import AttemptRecord
    from safewriter.tables.delta.commit import Commit
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["Description", "described"]

_BACK_MAX: Final = 10
"""The most versions that are looked at, with a request or two for each. Spark tells of the whole table beside each of
its own, so one is enough, unless settlers or other engines have written the last ones.
"""


@dataclass(frozen=True, slots=True)
class Description:
    """The features and properties of a table, and the version of the protocol for its writers."""

    features: frozenset[str]
    properties: dict[str, Any]
    writer_version: int


def described(history: DeltaHistory, attempt: AttemptRecord, commits: tuple[Commit, ...]) -> Description:
    """Return what the newest versions tell of the table at its last one; `commits` are those since the attempt's claim.

    If no Spark has written any of the last ten versions, the document's word counts. Raises `StoreError`.
    """
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    for told in _newest_first(history, attempt, commits):
        protocol = told.protocol if protocol is None else protocol
        metadata = told.metadata if metadata is None else metadata
        if protocol is not None and metadata is not None:
            break
    return Description(
        frozenset(attempt.features if protocol is None else _features(protocol)),
        dict(attempt.properties if metadata is None else metadata.get("configuration", {})),
        0 if protocol is None else protocol.get("minWriterVersion", 0),
    )


def _features(protocol: dict[str, Any]) -> set[str]:
    return {*protocol.get("readerFeatures", ()), *protocol.get("writerFeatures", ())}


def _newest_first(history: DeltaHistory, attempt: AttemptRecord, commits: tuple[Commit, ...]) -> Iterator[Commit]:
    held = {commit.version: commit for commit in commits}
    head = commits[-1].version if commits else attempt.version_before
    for version in range(head, max(head - _BACK_MAX, -1), -1):
        if version in held:
            yield held[version]
        if (checksum := history.checksum(version)) is not None:
            yield checksum
        if version not in held:
            commit = history.outline(version)
            if commit is None:  # log retention, or a version beyond all bounds
                return
            yield commit
