"""Open a block, from its announcement to the open gate: steps 1 to 5 of the protocol."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from safewriter.block.claim import Claim, Claimer
from safewriter.block.tidy import tidy
from safewriter.coordination.record import OpenWrite
from safewriter.deadline import epoch_ms
from safewriter.errors import TooLateError, TryAgainError, UnknownOutcomeError, UsageError
from safewriter.objects.store import StoreError
from safewriter.record import journal
from safewriter.record.document import CommitPoint
from safewriter.tables.session import Opening
from safewriter.tables.table import UndecidableError

if TYPE_CHECKING:
    from safewriter.block.block import Block
    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.turn import Turn
    from safewriter.record.journal import Event

__all__ = ["claim", "open_gate", "open_skipping", "record_in_turn", "tell_not_entered", "tell_not_made"]

_TEXT_MAX: Final = 4000
"""Characters of an error that go into the journal: its lines are limited, and a Spark plan may be longer."""


def claim(block: Block) -> Claim:
    """Claim the write, or find it committed. A `StoreError` becomes `UsageError` if denied, else `TryAgainError`."""
    if block.turn is not None:
        _check(block.turn)
    try:
        return _claim(block)
    except UndecidableError as error:
        raise TryAgainError(f"nothing was written: {error}") from error
    except StoreError as error:
        kind = UsageError if error.denied else TryAgainError
        raise kind(f"nothing was written: {error}") from error
    except UnknownOutcomeError:
        raise  # the marker stays, so that an operator finds the write and settles it by hand
    except Exception as error:
        if isinstance(error, TooLateError) and block.journal:
            with suppress(OSError):  # a stream or the user's code may lose the error's type
                journal.append(block.journal, "too_late", nonce=block.attempt.nonce)
        # Every request of the claim was answered, so nothing of this attempt can still arrive.
        tidy(block.checkpoint_uri, lambda: block.checkpoints.unmark(block.write.key, block.attempt.nonce))
        raise


def _check(turn: Turn | BorrowedTurn) -> None:
    try:
        turn.check()
    except StoreError as error:
        raise TryAgainError(f"nothing was written: the service of lock {turn.lock} does not answer: {error}") from error


def _claim(block: Block) -> Claim:
    """Steps 1 to 4. The marker's PUT and the reading of the table run side by side: neither needs the other."""
    _announce(block)
    claimer = Claimer(
        block.checkpoints.announcing(block.session.catalog),
        block.recovery,
        block.write,
        block.attempt,
        block.commit_point,
        block.schedule,
    )
    with ThreadPoolExecutor(1) as pool:
        announcing = pool.submit(claimer.announce)
        before = block.session.state()
        version = block.session.named_since(block.write.key)
        announcing.result()
    must_undo = block.commit_point is CommitPoint.SUCCESS
    return claimer.claim(before, version, block.session.undo_obstacle(before) if must_undo else None)


def _announce(block: Block) -> None:
    """Announce the write in the journal, before any object of it is on S3."""
    if not block.journal:
        return
    try:
        _tell(block.journal, "write_opened", block)
    except FileNotFoundError:
        raise UsageError(
            f"nothing was written: the journal {block.journal}, by which the handler learns of a write, is gone. The"
            " job has deleted its own directory; let it delete only what it has made"
        ) from None


def tell_not_entered(block: Block, error: BaseException) -> None:
    """Log to the journal that a block was not entered: a script may swallow the error, and its rows are missing."""
    if block.journal:
        with suppress(OSError):  # the script gets the error anyway
            _tell(block.journal, "not_entered", block, **_error_fields(error))


def tell_not_made(table: str, error: BaseException) -> None:
    """Log to the journal that a guard could not be made, for the same reason."""
    if path := os.environ.get("SOAL_JOURNAL"):
        with suppress(OSError):
            journal.append(path, "not_made", table=_cut(str(table)), **_error_fields(error))


def _error_fields(error: BaseException) -> dict[str, str]:
    return {"type": type(error).__name__, "reason": _cut(str(error))}


def _cut(text: str) -> str:
    """Truncate a text; the ellipsis shows the handler that half of a secret may precede it."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


def _tell(path: str, event: Event, block: Block, **fields: str) -> None:
    journal.append(
        path,
        event,
        writeKey=block.write.key,
        nonce=block.attempt.nonce,
        table=str(block.write.table),
        format=block.write.format,
        step=block.write.step,
        commitPoint=block.commit_point.value,
        checkpoint=block.checkpoint_uri,
        **fields,
    )


def record_in_turn(block: Block, claimed: Claim) -> None:
    """Note the claimed write in the record of the turn's lock, so that the next holder settles it first.

    The write can commit only afterwards, and the note fails once another job has the turn. Raises `TurnLostError`.
    """
    if block.turn is None:
        return
    document = claimed.checkpoint.document
    try:
        where = block.checkpoints.store.uri("")
        block.turn.open_write(OpenWrite(where, document.write_key, document.epoch, epoch_ms()))
    except StoreError as error:
        raise TryAgainError(f"nothing was written: {error}") from error


def open_gate(block: Block, claimed: Claim) -> None:
    """Step 5: let one commit of the claimed epoch through."""
    document = claimed.checkpoint.document
    key = block.checkpoints.note_key(document.write_key, document.epoch)
    block.session.begin(
        Opening(
            document=document,
            before=claimed.before,
            latest_start_ms=block.latest_start_ms,
            note=block.checkpoints.store.uri(key),
            journal=block.journal,
        )
    )


def open_skipping(block: Block) -> None:
    """Open a block whose write an earlier attempt has committed: no commit passes, and Delta skips the write."""
    if block.journal:
        with suppress(OSError):  # the supervisor needs the line only if the document is lost, too
            journal.append(block.journal, "write_skipped", nonce=block.attempt.nonce)
    if block.batch is not None:
        block.session.keep_state()
    block.session.skip(write_key=block.write.key, nonce=block.attempt.nonce)
