"""How a block begins and ends when its session fails, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from safewriter import SafeWriter, writer
from safewriter.block import Block


class Spark:
    """A session of Spark, told from others by itself."""


class Session:
    """A session that notes what is asked of it."""

    table = "s3a://lake/t"

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def verify(self) -> None:
        self._done.append("verified")

    def restore(self) -> None:
        self._done.append("restored")


class Ending:
    """The end of a block, which notes how it was reached."""

    succeeded = False
    done: list[str]

    def __init__(self, block: Any, held: object) -> None:
        self._done = block.done
        assert held == "held"

    def succeed(self) -> None:
        self.succeeded = True

    def finish(self) -> None:
        self._done.append("finished")

    def never_began(self) -> None:
        self._done.append("settled: it never began")


@pytest.fixture
def block(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What a SafeWriter holds; nothing in it needs a JVM."""
    done: list[str] = []
    made = SimpleNamespace(
        done=done,
        session=Session(done),
        check_batch=lambda: None,
        write=SimpleNamespace(key="key"),
        deadline=None,
        journal="journal",
        checkpoint_uri="s3://checkpoints/key",
        attempt=SimpleNamespace(nonce="nonce"),
    )
    monkeypatch.setattr(Block, "of", lambda *_, **__: made)
    monkeypatch.setattr(writer, "claim", lambda _: SimpleNamespace(held="held", already_committed=False))
    monkeypatch.setattr(writer, "open_gate", lambda *_: done.append("opened"))
    monkeypatch.setattr(writer, "Ending", Ending)
    monkeypatch.setattr("safewriter.journal.append", lambda *_, **__: done.append("closed"))
    return made


def test_a_claimed_write_whose_gate_cannot_be_opened_is_settled(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to wait for its lease to run out."""

    def refuse(*_: object) -> None:
        raise RuntimeError("no gate")

    monkeypatch.setattr(writer, "open_gate", refuse)
    spark: Any = Spark()
    with pytest.raises(RuntimeError, match="no gate"), SafeWriter(spark, "s3a://lake/t"):
        pytest.fail("the block has begun")
    assert block.done == ["verified", "settled: it never began", "restored", "closed"]


def test_a_session_that_cannot_be_put_back_changes_no_verdict(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a warning; and the block is over for those that come after it."""

    def fail() -> None:
        raise OSError("the JVM is gone")

    monkeypatch.setattr(block.session, "restore", fail)
    spark: Any = Spark()
    for _ in range(2):
        with SafeWriter(spark, "s3a://lake/t") as sw:
            sw.success()
    assert block.done == ["verified", "opened", "finished", "closed"] * 2
    assert "the session's settings could not be put back: the JVM is gone" in caplog.text
