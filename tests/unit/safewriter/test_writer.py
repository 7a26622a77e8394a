"""How a block begins and ends when its session fails, without Spark."""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from safewriter import SafeWriter, writer
from safewriter.block.block import Block
from safewriter.errors import BlockOpenError, TooLateError, UsageError
from safewriter.record.liveness import LEASE_MS
from tests.unit.safewriter.block_parts import CLOSED, Spark, guarded


def test_a_claimed_write_whose_gate_cannot_be_opened_is_settled(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No retry has to wait until its lease expires."""

    def refuse(*_: object) -> None:
        raise RuntimeError("no gate")

    monkeypatch.setattr(writer, "open_gate", refuse)
    with pytest.raises(RuntimeError, match="no gate"), guarded():
        pytest.fail("the block has begun")
    assert block.done == ["verified", "settled: it never began", "restored", CLOSED, "not entered: no gate"]


def test_a_session_that_cannot_be_put_back_changes_no_verdict(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a warning, and the block is closed for later blocks."""

    def fail() -> None:
        raise OSError("the JVM is gone")

    monkeypatch.setattr(block.session, "restore", fail)
    spark: Any = Spark()
    for _ in range(2):
        with SafeWriter(spark, "s3a://lake/t") as sw:
            sw.success()
    assert block.done == ["verified", "opened", "succeeded", CLOSED, "finished"] * 2
    assert "the session's settings could not be restored: the JVM is gone" in caplog.text


def test_a_block_is_made_as_the_script_says(block: SimpleNamespace) -> None:
    """Each option reaches the block under the name that the script uses."""
    options: dict[str, Any] = {
        "format": "iceberg",
        "step": "daily",
        "commit_point": "success",
        "checkpoint_bucket": "checkpoints",
        "warn_before_ms": 5,
        "turn": None,
    }
    spark: Any = Spark()
    SafeWriter(spark, "lake.db.t", **options)
    assert block.options == options


def test_a_write_that_cannot_be_claimed_leaves_nothing_to_settle(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says why, and the session is restored."""

    def refuse(_: object) -> None:
        raise TooLateError("too late")

    monkeypatch.setattr(writer, "claim", refuse)
    with pytest.raises(TooLateError, match="too late"), guarded():
        pytest.fail("the block has begun")
    assert block.done == ["verified", "restored", CLOSED, "not entered: too late"]


def test_a_block_that_was_never_entered_has_no_verdict(block: SimpleNamespace) -> None:
    """A script's ExitStack may end it anyway."""
    guarded().__exit__(None, None, None)
    assert block.done == ["restored", CLOSED]


def test_no_statement_gets_the_table_before_the_block(block: SimpleNamespace) -> None:
    """It would write without a guard, and the script would not notice."""
    sw = guarded()
    with pytest.raises(UsageError, match=r"write SafeWriter\.table inside `with"):
        _ = sw.table
    with sw:
        pass
    assert sw.table == "s3a://lake/t", "a script may read what it has written"


def test_a_block_is_claimed_opened_declared_done_and_ended(block: SimpleNamespace) -> None:
    """Once, however often the script calls success()."""
    sw = guarded()
    assert sw.checkpoint is None
    assert sw.checkpoint_uri == "s3://checkpoints/key"
    with sw:
        assert sw.table == "s3a://lake/t"
        assert sw.checkpoint == "the document"
        sw.success()
        sw.success()
    assert block.done == ["verified", "opened", "succeeded", "restored", CLOSED, "finished"]


def test_a_guard_that_cannot_be_made_is_told_to_the_supervisor(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may swallow the error; then it enters no block."""
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(writer, "tell_not_made", lambda table, error: told.append((table, str(error))))

    def refuse(*_: object, **__: object) -> None:
        raise UsageError("step=5 is no text")

    monkeypatch.setattr(Block, "of", refuse)
    with pytest.raises(UsageError, match="no text"):
        guarded()
    assert told == [("s3a://lake/t", "step=5 is no text")]
    assert block.done == []


def test_a_block_on_a_thread_of_no_batch_is_refused_before_anything_is_done(block: SimpleNamespace) -> None:
    """It would be unclear which batch it is for."""

    def refuse() -> None:
        raise UsageError("no batch")

    block.check_surroundings = refuse
    with pytest.raises(UsageError, match="no batch"):
        guarded().__enter__()
    assert block.done == ["not entered: no batch"]


def test_one_block_is_open_on_a_session(block: SimpleNamespace) -> None:
    """The refused block leaves the open one as it is; after the end of that one another may open."""
    first = guarded().__enter__()
    second = SafeWriter(first._spark, "s3a://lake/t")
    with pytest.raises(BlockOpenError):
        second.__enter__()
    assert block.done[:3] == ["verified", "opened", "verified"]
    assert block.done[3].startswith("not entered: another SafeWriter block is open"), "its rows are nowhere"
    first.__exit__(None, None, None)
    second.__enter__()
    assert block.done[-1] == "opened"


def test_success_is_for_an_open_block(block: SimpleNamespace) -> None:
    """Before and after the block it is a mistake of the script, and so is entering a block twice."""
    sw = guarded()
    with pytest.raises(UsageError, match="not open"):
        sw.success()
    with sw:
        pass
    assert "failed: None" in block.done
    with pytest.raises(UsageError, match="not open"):
        sw.success()
    with pytest.raises(UsageError, match="entered only once"):
        sw.__enter__()


def test_the_error_of_a_script_fails_its_block_and_goes_on(block: SimpleNamespace) -> None:
    """The write is settled first, then the session is restored."""
    with pytest.raises(ZeroDivisionError), guarded():
        raise ZeroDivisionError("theirs")
    assert block.done == ["verified", "opened", "failed: theirs", "restored", CLOSED]


def test_a_deadline_has_a_watchdog_and_a_job_without_a_supervisor_a_heartbeat(block: SimpleNamespace) -> None:
    """A supervisor renews the leases of all writes of its job."""
    block.schedule, block.journal = SimpleNamespace(warn_at_ms=7, left_ms=lambda instant_ms: instant_ms - 4), None
    with guarded() as sw:
        sw.success()
    third_of_a_lease_s = LEASE_MS / 3000
    assert block.done == [
        "verified",
        "opened",
        "Watchdog of [3]",
        "deadline",
        f"Heartbeat of [{third_of_a_lease_s}]",
        "lease of ('key', 'nonce')",
        "succeeded",
        "Watchdog stopped",
        "Watchdog stopped",
        "Heartbeat stopped",
        "restored",
        "finished",
    ]


def test_a_fork_leaves_the_block_to_its_parent(block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no JVM of its own, and does not know what the parent still writes."""
    sw = guarded().__enter__()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(UsageError, match="forked in the block"):
        sw.success()
    assert sw.__exit__(None, None, None) is False
    assert block.done == ["verified", "opened"]


def test_a_journal_that_cannot_be_written_changes_no_verdict(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could only have ended the lease early."""

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("safewriter.record.journal.append", full)
    with guarded() as sw:
        sw.success()
    assert block.done == ["verified", "opened", "succeeded", "restored", "finished"]


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (None, False),
        (KeyError("our table is there"), False),
        (ValueError("theirs"), True),
        (KeyboardInterrupt("our table"), True),
    ],
)
def test_a_write_that_was_committed_before_is_skipped(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, *, goes_on: bool
) -> None:
    """An error that only means that the write was skipped is not raised."""
    monkeypatch.setattr(writer, "claim", lambda _: SimpleNamespace(checkpoint="checkpoint", already_committed=True))
    with pytest.raises(type(error)) if error is not None and goes_on else nullcontext(), guarded() as sw:
        assert sw.already_committed
        sw.success()
        if error is not None:
            raise error
    skipped = ["opened to be skipped", "the skipped write is there"]
    left = [] if error is None or goes_on else ["block_left journal nonce"]
    assert block.done == ["verified", *skipped, *left, "restored", CLOSED, "cleaned ('key', 'nonce')"]


def test_a_skipped_block_leaves_a_statement_that_outlives_it_its_files(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later settler deletes them, and finds the block's marker."""
    monkeypatch.setattr(writer, "claim", lambda _: SimpleNamespace(checkpoint="checkpoint", already_committed=True))
    monkeypatch.setattr(block.session, "is_outlived", lambda: True)
    with guarded() as sw:
        sw.success()
    assert block.done[-2:] == [CLOSED, "block_outlived journal nonce"]


def test_a_success_beside_a_statement_that_outlives_it_keeps_the_files_and_is_remarked(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement may run on a daemon thread, so only the journal's line can report its rows."""
    monkeypatch.setattr(block.session, "is_outlived", lambda: True)
    with guarded() as sw:
        sw.success()
    assert block.done[-3:] == [CLOSED, "block_outlived journal nonce", "finished, files stay"]


def test_a_skipped_block_that_cannot_be_opened_settles_nothing(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its write has its verdict."""

    def refuse(*_: object) -> None:
        raise RuntimeError("no gate")

    monkeypatch.setattr(writer, "claim", lambda _: SimpleNamespace(checkpoint="checkpoint", already_committed=True))
    monkeypatch.setattr(writer, "open_skipping", refuse)
    with pytest.raises(RuntimeError, match="no gate"), guarded():
        pytest.fail("the block has begun")
    assert block.done == ["verified", "restored", CLOSED, "not entered: no gate"]
