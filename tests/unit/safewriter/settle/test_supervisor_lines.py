"""Which lines of a journal name a write, how often they are read, and a document that goes away meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.record import journal
from safewriter.settle.supervisor import OpenWrites
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.settle.supervised import BUDGET_MS, Children
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.record.journal import Entry


@pytest.mark.parametrize("name", ["writeKey", "nonce", "table", "format", "checkpoint"])
@pytest.mark.parametrize("value", [None, 7, ["text"]])
def test_a_line_without_one_of_its_texts_names_no_write(children: Children, name: str, value: object) -> None:
    """The guard writes all of them; the line is foreign, and no reason to fail."""
    found = children.new()
    found.opened(found.world.job(), **{name: value})

    assert found.supervision().settle(budget_ms=BUDGET_MS) == ()
    assert OpenWrites(found.journal).now() == ()


def test_only_the_line_of_an_opened_block_opens_one(children: Children, path: Path) -> None:
    """Other events may name the same write."""
    found = children.new()
    fields = {"writeKey": "sw-1", "nonce": "n", "table": TABLE, "format": "delta", "step": None, "checkpoint": "c"}
    journal.append(path, "write_skipped", **fields)

    assert OpenWrites(found.journal).now() == ()


def test_what_was_read_is_not_read_again(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long job's journal is read every few seconds."""
    found, _ = children.claimed()
    asked: list[int] = []
    entries = found.journal.entries

    def counted(since: int = 0) -> tuple[Entry, ...]:
        asked.append(since)
        return entries(since)

    monkeypatch.setattr(found.journal, "entries", counted)
    writes = OpenWrites(found.journal)
    before = writes.now()

    assert writes.now() == before
    assert asked == [0, len(entries())]


def test_a_document_that_goes_away_meanwhile_is_reported_as_unknown(children: Children) -> None:
    """Somebody has removed it between two requests: its absence proves nothing about the table."""
    world = World()
    reads = 0

    def remove(number: int) -> None:
        nonlocal reads
        if network.sent[number - 1].key.startswith("checkpoints/"):
            reads += 1
            if reads == 2:
                world.bucket.delete(f"checkpoints/{world.key}.json")

    network = Network(before=remove)
    found = children.new(world, network)
    found.opened(world.job().begin())

    report = found.settle()

    assert report.status == "unknown"
    assert "was settled" in str(report.reason)
