"""What a table format gives to a guarded block: its side of the Spark session, from the first look to the last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.errors import SafeWriterError
    from safewriter.record.document import Checkpoint

__all__ = ["TABLE_EXISTS", "MicroBatch", "Opening", "Seen", "Session", "TableState"]

TABLE_EXISTS: Final = "DELTA_PATH_EXISTS|DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION|TABLE_OR_VIEW_ALREADY_EXISTS"
"""How Spark and Delta say that a table is there already: a pattern of their error classes."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table before a write. `version` is -1 if there is none; `features` are those of its protocol.

    `modified_ms`: when the store received that version (epoch milliseconds), by which a table that was dropped and
    recreated is told from this one. `actions`: what an undo needs besides, in the format's own words. `catalog`: how a
    catalog that commits to it is reached, without secrets.
    """

    version: int
    table_id: str | None
    features: tuple[str, ...]
    properties: dict[str, str]
    actions: str = ""
    modified_ms: int | None = None
    catalog: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The batch of a stream that a thread works on. `run_id` is that of the stream's start."""

    query_id: str
    batch_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What a block is opened with. `latest_start_ms`: epoch milliseconds after which no commit may start.

    `note`: where a commit that creates or changes a table says so first. `journal`: the supervisor's.
    """

    document: Checkpoint
    before: TableState
    latest_start_ms: int | None
    note: str
    journal: str | None


class Seen(Protocol):
    """What the session knows of the block's commits."""

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

    def error_of(self, error: Exception) -> SafeWriterError | None:
        """Return the guard's own refusal as a typed error if that is what `error` is about."""
        ...


class Session(Protocol):
    """One guarded block on one table in one Spark session."""

    @property
    def table(self) -> str:
        """What the block's statements call the table."""
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """What a settler needs to reach the table's catalog and no document may hold; it stays in this process."""
        ...

    @property
    def catalog(self) -> dict[str, str]:
        """How a settler reaches the table's catalog, without secrets; nothing where a table lies at a path."""
        ...

    def micro_batch(self) -> MicroBatch | None:
        """Return the stream's batch if this runs in `foreachBatch`; `UsageError` if it may, and no batch is known."""
        ...

    def verify(self) -> None:
        """Make sure that this session's writes to the table can be guarded; `UsageError` says what to change."""
        ...

    def state(self) -> TableState:
        """Look at the table before the claim; `UnsupportedError` for one that is not guarded."""
        ...

    def undo_obstacle(self, before: TableState) -> str | None:
        """Tell why a commit to this table could not be undone, if that is known before."""
        ...

    def begin(self, opening: Opening) -> None:
        """Let the block's statements write, under the guard."""
        ...

    def skip(self, *, write_key: str, nonce: str) -> None:
        """Let the block's statements run and nothing of them be seen: an earlier attempt has committed."""
        ...

    def was_skipped(self, error: Exception) -> bool:
        """Tell whether an error in a skipped block says no more than that nothing was to be written."""
        ...

    @property
    def has_begun(self) -> bool:
        """Whether a statement may have used the guard."""
        ...

    def publish(self) -> None:
        """Make visible what the block has staged, where its statements do not do that themselves.

        Raises `StoreError` if the answer is lost; then the table tells.
        """
        ...

    def seen(self) -> Seen:
        """Say what is known of the block's commits."""
        ...

    def shut(self, reason: str) -> None:
        """Let no commit through any more."""
        ...

    def cancel(self) -> None:
        """Cancel the block's jobs, those that it would still start included."""
        ...

    def wait_until_quiet(self, patience_s: float) -> bool:
        """Wait until no job of the block and no task at all runs here; False if patience ended first."""
        ...

    def may_have_left_files(self, seen: Seen) -> bool:
        """Tell whether files of the block may lie about that no commit refers to."""
        ...

    def restore(self) -> None:
        """Put the session back as it was."""
        ...
