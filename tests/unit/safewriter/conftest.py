"""A block without a JVM, whose session, watchdog, heartbeat and ending record their calls."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from safewriter import writer
from safewriter.block.block import Block
from safewriter.writer import OpenBlocks
from tests.unit.safewriter.block_parts import Ending, Heartbeat, Session, Thread, Watchdog


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes with which the process would have been ended."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


@pytest.fixture
def block(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The block of a SafeWriter; nothing in it needs a JVM."""
    done: list[str] = []
    made = SimpleNamespace(
        done=done,
        session=Session(done),
        check_surroundings=lambda: None,
        table="s3a://lake/t",
        write=SimpleNamespace(key="key"),
        schedule=None,
        turn=None,
        journal="journal",
        checkpoint_uri="s3://checkpoints/key",
        checkpoints=SimpleNamespace(
            renew_lease=lambda *names: done.append(f"lease of {names}"),
        ),
        recovery=SimpleNamespace(clean_skipped=lambda *names: done.append(f"cleaned {names}")),
        attempt=SimpleNamespace(nonce="nonce"),
    )

    def of(*_: object, **options: Any) -> SimpleNamespace:
        made.options = options
        return made

    monkeypatch.setattr(Block, "of", of)
    monkeypatch.setattr(writer, "claim", lambda _: SimpleNamespace(checkpoint="checkpoint", already_committed=False))
    monkeypatch.setattr(writer, "record_in_turn", lambda block, _: None if block.turn is None else done.append("noted"))
    monkeypatch.setattr(writer, "open_gate", lambda *_: done.append("opened"))
    monkeypatch.setattr(writer, "tell_not_entered", lambda _, error: done.append(f"not entered: {error}"))
    monkeypatch.setattr(writer, "open_skipping", lambda _: done.append("opened to be skipped"))
    monkeypatch.setattr(writer, "tidy", lambda _, work: work())
    monkeypatch.setattr(writer, "Ending", Ending)
    monkeypatch.setattr(Thread, "done", done, raising=False)
    monkeypatch.setattr(writer, "Watchdog", Watchdog)
    monkeypatch.setattr(writer, "Heartbeat", Heartbeat)
    monkeypatch.setattr(
        "safewriter.record.journal.append", lambda where, what, nonce, **_: done.append(f"{what} {where} {nonce}")
    )
    monkeypatch.setattr(writer, "_registry", OpenBlocks())
    return made
