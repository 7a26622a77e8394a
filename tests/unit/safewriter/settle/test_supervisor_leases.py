"""The leases and the names of the writes that are open while the child runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record import journal
from safewriter.record.journal import Journal
from safewriter.settle.supervisor import OpenWrites
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.safewriter.settle.supervised import Children


def test_leases_are_renewed_for_open_blocks_only(children: Children) -> None:
    """No process waits for a block that has ended."""
    found = children.new()
    first, second = found.world.job(), found.world.job()
    found.opened(first)
    found.closed(first)
    found.opened(second)

    found.supervision().renew_leases()

    leases = [key for key in found.world.bucket.contents() if key.startswith("leases/")]
    assert leases == [f"leases/{found.world.key}/{second.attempt.nonce}"]


def test_a_lease_that_cannot_be_renewed_disturbs_nobody(children: Children) -> None:
    """The next one is still renewed, and nothing is raised."""
    found = children.new(World(), Network(Fault.REFUSE, 1))
    first, second = found.world.job(), found.world.job()
    found.opened(first)
    found.opened(second)

    found.supervision().renew_leases()

    assert found.network.fired
    assert [key for key in found.world.bucket.contents() if key.startswith("leases/")] == [
        f"leases/{found.world.key}/{second.attempt.nonce}"
    ]


def test_leases_without_a_journal_are_no_work(children: Children) -> None:
    """The child has not begun yet."""
    found = children.new()

    found.supervision().renew_leases()

    assert found.network.sent == []


def test_a_table_is_named_while_its_block_is_open(tmp_path: Path) -> None:
    """Tables of two open blocks are two names, two blocks on one table are one; foreign lines name none."""
    path = tmp_path / "journal.jsonl"
    writes = OpenWrites(Journal(path))
    assert writes.tables() == ()
    journal.append(path, "write_opened", nonce="0")
    for nonce, table in (("1", "s3://a/x"), ("2", "s3://b/y"), ("3", "s3://a/x")):
        more = {"writeKey": "k", "format": "delta", "step": None, "checkpoint": "s3://c/k"}
        journal.append(path, "write_opened", nonce=nonce, table=table, **more)
    assert writes.tables() == ("s3://a/x", "s3://b/y")
    journal.append(path, "write_closed", nonce="1")
    journal.append(path, "write_closed", nonce="2")
    assert writes.tables() == ("s3://a/x",)
    journal.append(path, "write_closed", nonce="3")
    assert writes.tables() == ()
