"""The checkpoint document: the state of one write, and how it may change.

The legal moves are data. Each change of a document checks them, and so do the tests after each kill.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from safewriter.bounds import checked, short, shortened, space_bytes, whole
from safewriter.entropy import unique_id
from safewriter.errors import UnknownVersionError, UnreadableCheckpointError
from safewriter.identity import Attempt, check_write_key
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "ATTEMPTS_MAX",
    "BY_HAND",
    "DELIVERIES_MAX",
    "FOUND",
    "LEGAL_MOVES",
    "NO_CHANGE",
    "OPEN",
    "RECORD_MAX_BYTES",
    "SCHEMA_VERSION",
    "AttemptRecord",
    "Checkpoint",
    "CommitPoint",
    "IllegalMoveError",
    "Status",
    "read_record",
]

SCHEMA_VERSION: Final = 1
ATTEMPTS_MAX: Final = 50
RECORD_MAX_BYTES: Final = 4 << 20
"""The most that a document, a marker or a note may have: ten times more than a document of 50 attempts at a table with
many properties."""
_SPACE_MAX_BYTES: Final = 24 << 20
"""The most memory that its values may take: the sweeper reads eight at a time."""
DELIVERIES_MAX: Final = 20
BY_HAND: Final = "by hand"
"""`settled_by` of a verdict that a person has set; the table may say something else."""

FOUND: Final = "the table holds it, and its document was gone"
"""The reason of a verdict that was read from the table alone."""
NO_CHANGE: Final = "no change: the program has said that it has nothing to write"
"""The reason of a committed write whose block made no commit."""


class Status(StrEnum):
    """The states of a write; the first three are the paper's words."""

    IN_PROGRESS = "in_progress"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    ROLLING_BACK = "rolling_back"
    UNKNOWN = "unknown"


class CommitPoint(StrEnum):
    """The event that makes a write count after a kill: the table's commit, or only `success()`."""

    WRITE = "write"
    SUCCESS = "success"


OPEN: Final = frozenset({Status.IN_PROGRESS, Status.ROLLING_BACK, Status.UNKNOWN})

LEGAL_MOVES: Final = frozenset(
    {
        (Status.IN_PROGRESS, Status.COMMITTED),
        (Status.IN_PROGRESS, Status.ROLLED_BACK),
        (Status.IN_PROGRESS, Status.ROLLING_BACK),
        (Status.IN_PROGRESS, Status.UNKNOWN),
        (Status.ROLLING_BACK, Status.ROLLED_BACK),
        (Status.ROLLING_BACK, Status.COMMITTED),  # the undo was refused
        (Status.ROLLING_BACK, Status.UNKNOWN),
        (Status.UNKNOWN, Status.COMMITTED),
        (Status.UNKNOWN, Status.ROLLED_BACK),
        (Status.UNKNOWN, Status.ROLLING_BACK),
        (Status.ROLLED_BACK, Status.IN_PROGRESS),  # a new claim, and only that, raises the epoch
        # Clean-up only: it is recorded under the same verdict.
        (Status.COMMITTED, Status.COMMITTED),
        (Status.ROLLED_BACK, Status.ROLLED_BACK),
    }
)


class IllegalMoveError(Exception):
    """A bug in SafeWriter: a document was about to make a move that the protocol does not allow."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt as the document records it. Times are epoch milliseconds.

    `version_before` is a lower bound of the table's version at the claim; -1, in JSON "absent", if there was no table.
    `modified_ms` and `sequence` as in `TableState`. `table_id`, `features` and `properties` are those of the table at
    that time: enough to settle without Spark.
    """

    epoch: int
    nonce: str
    run_id: str
    request_id: str | None
    prefix: str
    deadline_ms: int | None
    started_ms: int
    version_before: int
    modified_ms: int | None = None
    sequence: int = 0
    table_id: str | None = None
    features: tuple[str, ...] = ()
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    catalog: dict[str, str] = dataclasses.field(default_factory=dict)
    commit_version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    settled_ms: int | None = None
    settled_by: str | None = None
    files_removed: int = 0
    cleaned: bool = False
    claimed: bool = True
    """False: the attempt was announced and died before its claim, so it has written nothing, and its `version_before`
    says nothing of the table."""

    @property
    def may_have_created(self) -> bool:
        """Whether the table was absent when the attempt began to write."""
        return self.claimed and self.version_before < 0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The document of one write key. `owner` is the nonce of the attempt that owns `epoch`.

    `deliveries` are the last few deliveries (`Run.delivery`) whose block has claimed the write or skipped it.
    `incomplete`: why a retry may neither skip nor repeat the write before its owner has looked: a committed write lacks
    rows of its block, or statements of the block have written past it, and their rows stay.
    """

    run_key: str
    write_key: str
    fingerprint: str
    table: str
    format: str
    step: str | None
    commit_point: CommitPoint
    status: Status
    epoch: int
    owner: str
    attempts: tuple[AttemptRecord, ...]
    reason: str | None = None
    undo_refused: str | None = None
    incomplete: str | None = None
    attempts_dropped: int = 0
    deliveries: tuple[str, ...] = ()
    nonce: str = ""

    @property
    def attempt(self) -> AttemptRecord:
        """The attempt that owns the current epoch."""
        return self.attempts[-1]

    @property
    def is_finished(self) -> bool:
        """Whether the write has its verdict, and nothing is left to clean up."""
        return self.status not in OPEN and all(attempt.cleaned for attempt in self.attempts)

    def moved(
        self,
        status: Status,
        *,
        reason: str | None = None,
        undo_refused: str | None = None,
        incomplete: str | None = None,
        **attempt: Any,  # noqa: ANN401 - fields of AttemptRecord
    ) -> Checkpoint:
        """Return the document after a legal move; `attempt`: changes to the owner's record."""
        if (self.status, status) not in LEGAL_MOVES or status is Status.IN_PROGRESS:
            raise IllegalMoveError(f"{self.write_key}: {self.status} -> {status}")
        last = dataclasses.replace(self.attempt, **attempt)
        return dataclasses.replace(
            self,
            status=status,
            reason=_text(reason, self.reason),
            undo_refused=_text(undo_refused, self.undo_refused),
            incomplete=_text(incomplete, self.incomplete),
            attempts=(*self.attempts[:-1], last),
        )

    def skipped(self, delivery: str) -> Checkpoint:
        """Return the document after a block has skipped the write, since it is committed."""
        if self.status is not Status.COMMITTED:
            raise IllegalMoveError(f"{self.write_key}: skipped under {self.status}")
        return dataclasses.replace(self, deliveries=self._delivered(delivery))

    def _delivered(self, delivery: str) -> tuple[str, ...]:
        others = (other for other in self.deliveries if other != delivery)
        return (*others, delivery)[-DELIVERIES_MAX:]

    def claimed(self, attempt: AttemptRecord, commit_point: CommitPoint, delivery: str) -> Checkpoint:
        """Return the document after a new claim of a write that was rolled back."""
        if (self.status, Status.IN_PROGRESS) not in LEGAL_MOVES or attempt.epoch <= self.epoch:
            raise IllegalMoveError(
                f"{self.write_key}: claim of epoch {attempt.epoch} over {self.status} epoch {self.epoch}"
            )
        attempts = list(self.attempts)
        while len(attempts) >= ATTEMPTS_MAX:
            # Drop the oldest one that is cleaned, else the oldest. The first one that may have created the table always
            # stays: by it `success()` recognises an empty table that the write has not filled.
            creator = next((old for old in attempts if old.may_have_created), None)
            others = [old for old in attempts if old is not creator]
            attempts.remove(next((old for old in others if old.cleaned), others[0]))
        return dataclasses.replace(
            self,
            status=Status.IN_PROGRESS,
            commit_point=commit_point,
            epoch=attempt.epoch,
            owner=attempt.nonce,
            attempts=(*attempts, attempt),
            attempts_dropped=self.attempts_dropped + len(self.attempts) - len(attempts),
            deliveries=self._delivered(delivery),
            reason=None,
            undo_refused=None,
        )

    def cleaned(self, nonces: Collection[str], files_removed: int) -> Checkpoint:
        """Return the document after a clean-up under a terminal verdict; `nonces` are the cleaned attempts."""
        if self.status in OPEN:
            raise IllegalMoveError(f"{self.write_key}: clean-up under {self.status}")
        attempts = tuple(
            dataclasses.replace(attempt, cleaned=True) if attempt.nonce in nonces else attempt
            for attempt in self.attempts
        )
        last = dataclasses.replace(attempts[-1], files_removed=attempts[-1].files_removed + files_removed)
        return dataclasses.replace(self, attempts=(*attempts[:-1], last))

    def to_bytes(self) -> bytes:
        """Return the document as JSON, with a nonce of its own, so that no two writes of it are equal.

        Raises `UnreadableCheckpointError` if `from_bytes` would refuse the result: the stored one stays readable.
        """
        body = json.dumps(_written(self), indent=1).encode()
        try:
            self.from_bytes(body)
        except UnreadableCheckpointError as error:
            raise UnreadableCheckpointError(f"{self.write_key}: nothing was written, since {error}") from error
        return body

    @classmethod
    def from_bytes(cls, body: bytes) -> Checkpoint:
        """Parse a document; raise `UnreadableCheckpointError` if it is damaged or of an unknown schema version."""
        try:
            fields = read_record(body)
            version = fields.pop("schema_version")
            if version != SCHEMA_VERSION:
                raise UnknownVersionError(
                    f"checkpoint of schema version {short(version)}; this code knows {SCHEMA_VERSION}"
                )
            return _read(fields)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise UnreadableCheckpointError(f"not a checkpoint document: {error!r}") from error


def read_record(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse the JSON of an object of the checkpoint bucket; raise `ValueError` if it is none, or too large."""
    if len(body) > RECORD_MAX_BYTES or (space := space_bytes(body)) > _SPACE_MAX_BYTES:
        size = f"{len(body):,} bytes" if len(body) > RECORD_MAX_BYTES else f"values of {space:,} bytes of memory"
        raise ValueError(f"it has {size}, more than such an object may have")
    return parsed(body)


def _text(text: str | None, before: str | None) -> str | None:
    return before if text is None else shortened(text)


def _written(document: Checkpoint) -> dict[str, Any]:
    fields = dataclasses.asdict(document)
    for attempt in fields["attempts"]:
        if attempt["version_before"] < 0:
            attempt["version_before"] = "absent"
        if not attempt["catalog"]:  # a table that lies at a path has none
            del attempt["catalog"]
    return {
        "schema_version": SCHEMA_VERSION,
        **fields,
        # The paper's fields, for people and monitors that read one document at a glance.
        "version_before": fields["attempts"][-1]["version_before"],
        "run_id": document.attempt.run_id,
        "deadline_ms": document.attempt.deadline_ms,
        "nonce": unique_id(),
    }


def _read(fields: dict[str, Any]) -> Checkpoint:
    names = {field.name for field in dataclasses.fields(Checkpoint)}
    known = {name: value for name, value in fields.items() if name in names}
    if not 1 <= (number := len(fields["attempts"])) <= ATTEMPTS_MAX:  # a settler looks in the table for each of them
        raise ValueError(f"{number} attempts, not 1 to {ATTEMPTS_MAX}")
    known["attempts"] = tuple(_read_attempt(attempt) for attempt in fields["attempts"])
    known["status"] = Status(fields["status"])
    known["deliveries"] = tuple(fields.get("deliveries") or ())
    known["commit_point"] = CommitPoint(fields["commit_point"])
    document = checked(Checkpoint(**known))
    check_write_key(document.write_key, document.run_key, document.table, document.step)
    for attempt in document.attempts:
        Attempt(attempt.nonce).check_prefix(attempt.prefix, document.write_key, attempt.epoch)
    return document


def _read_attempt(fields: dict[str, Any]) -> AttemptRecord:
    names = {field.name for field in dataclasses.fields(AttemptRecord)}
    known = {name: value for name, value in fields.items() if name in names}
    known["version_before"] = -1 if fields["version_before"] == "absent" else whole(fields["version_before"])
    known["features"] = tuple(fields.get("features", ()))
    return checked(AttemptRecord(**known))
