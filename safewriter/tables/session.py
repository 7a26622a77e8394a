"""The interface between a guarded block and a table format: the format's side of the Spark session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.errors import SafeWriterError
    from safewriter.record.document import Checkpoint

__all__ = ["BlockReport", "MicroBatch", "Opening", "Session", "TableState"]


@dataclass(frozen=True, slots=True)
class TableState:
    """A table before a write. `version` is -1 if there is none; `features` are those of its protocol.

    `modified_ms`: when the store received that version (epoch milliseconds); it shows whether the table was dropped and
    recreated. On Iceberg, when the table was changed last, by its writer's clock. `sequence`: Iceberg's number of the
    last snapshot, in the order of commits; 0 if the format has none. `catalog`: the properties by which a settler
    reaches the table's catalog, without secrets.
    """

    version: int
    table_id: str | None
    features: tuple[str, ...]
    properties: dict[str, str]
    modified_ms: int | None = None
    sequence: int = 0
    catalog: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The batch of a stream that a thread works on. `run_id` is that of the stream's start."""

    query_id: str
    batch_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The parameters of `Session.begin`. `latest_start_ms`: epoch milliseconds after which no commit may start.

    `note`: the URI for the note of a commit that creates or changes a table. `journal`: the path of the journal.
    """

    document: Checkpoint
    before: TableState
    latest_start_ms: int | None
    note: str
    journal: str | None


class BlockReport(Protocol):
    """The session's knowledge of the block's commits."""

    @property
    def passed(self) -> bool:
        """Whether a commit may have been sent."""
        ...

    @property
    def answered(self) -> bool:
        """Whether every commit that was sent has had its answer."""
        ...

    @property
    def noted(self) -> bool:
        """Whether a note was put into the checkpoint bucket."""
        ...

    @property
    def lost(self) -> str | None:
        """Why the block's write lacks rows, whatever has landed: a statement of the block was refused."""
        ...

    @property
    def strays(self) -> str | None:
        """Which rows the block's statements have put into the table past the block: they stay, whatever the verdict."""
        ...

    def error_of(self, error: Exception) -> SafeWriterError | None:
        """Return the guard's own refusal as a typed error if `error` reports one; else None."""
        ...


class Session(Protocol):
    """One guarded block on one table in one Spark session."""

    @property
    def table(self) -> str:
        """The table's name in the block's statements."""
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """The catalog's secrets, which a settler needs and no document may hold; they stay in this process."""
        ...

    @property
    def catalog(self) -> dict[str, str]:
        """The properties, without secrets, by which a settler reaches the catalog; none if there is no catalog."""
        ...

    def micro_batch(self) -> MicroBatch | None:
        """Return the stream's batch if this runs in `foreachBatch`; raise `UsageError` if that is unclear."""
        ...

    def verify(self) -> None:
        """Check that this session's writes to the table can be guarded; a `UsageError` says what to change."""
        ...

    def state(self) -> TableState:
        """Read the table's state before the claim; raise `UnsupportedError` if the table cannot be guarded."""
        ...

    def named_since(self, write_key: str) -> int | None:
        """Return the first of the table's last versions that names the write; None if none does.

        Raises `StoreError` if the versions cannot be read.
        """
        ...

    def undo_obstacle(self, before: TableState) -> str | None:
        """Return why a commit to this table could not be undone, if that is known before it; else None."""
        ...

    def begin(self, opening: Opening) -> None:
        """Let the block's statements write, under the guard."""
        ...

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Let the block's statements run without an effect on the table: an earlier attempt has committed."""
        ...

    def keep_state(self) -> None:
        """Have the stream write the state of this batch, which a skipped block does not compute."""
        ...

    def was_skipped(self, error: Exception) -> bool:
        """Return whether an error in a skipped block only means that the write was skipped."""
        ...

    def check_skipped(self) -> None:
        """Raise `NotCommittedError` if the table has stopped showing the skipped write since the block began."""
        ...

    @property
    def has_begun(self) -> bool:
        """Whether a statement may have used the guard."""
        ...

    def has_written(self) -> bool:
        """Return whether a statement of the block has written rows, published or not."""
        ...

    def publish(self) -> None:
        """Publish the write that the block has staged, if its statements do not commit by themselves.

        Raises `StoreError` if the answer is lost; then the table decides.
        """
        ...

    def report(self) -> BlockReport:
        """Return the session's report on the block's commits."""
        ...

    def shut(self, reason: str) -> None:
        """Let no commit through any more."""
        ...

    def cancel(self) -> None:
        """Cancel the block's jobs, also those that it would still start."""
        ...

    def wait_until_quiet(self, patience_s: float) -> bool:
        """Wait until no job of the block and no task at all runs here; return False if `patience_s` passed first."""
        ...

    def may_have_left_files(self, report: BlockReport) -> bool:
        """Return whether the block, which has ended, may have left files that no commit refers to."""
        ...

    def is_outlived(self) -> bool:
        """Return whether a statement that began in the block may still run and need its files; after the restore,
        whether one did at that time.
        """
        ...

    def restore(self) -> None:
        """Restore the session's settings."""
        ...
