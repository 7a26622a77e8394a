"""If the supervisor finds no verdict, it reports unknown, and the document stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import StoreError
from safewriter.record import journal
from safewriter.record.document import Status
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.safewriter.settle.supervised import Children


def test_a_document_that_is_gone_is_not_taken_for_none(children: Children) -> None:
    """If a commit was sent, there was a document."""
    found, job = children.claimed()
    found.passed(job)
    job.land()
    found.world.bucket.delete(f"checkpoints/{found.world.key}.json")

    report = found.settle()

    assert report.status == "unknown"
    assert "is gone" in (report.reason or "")


def test_a_document_that_is_gone_tells_nothing_if_an_earlier_block_has_sent_a_commit(children: Children) -> None:
    """The child's second try at the write has sent no commit; its first may have landed."""
    world = World()
    found, first = children.claimed(world)
    found.passed(first)
    first.land()
    found.opened(world.job())
    world.bucket.delete(f"checkpoints/{world.key}.json")

    report = found.settle()
    assert report.status == "unknown"
    assert "is gone" in (report.reason or "")


def test_a_document_that_goes_while_it_is_settled_is_unknown(children: Children) -> None:
    """It was there a moment ago, and open."""
    world = World()

    def expire(number: int) -> None:
        if number > 1:
            world.bucket.delete(f"checkpoints/{world.key}.json")

    network = Network(before=expire)
    found = children.new(world, network)
    job = world.job().begin()
    found.opened(job)
    found.passed(job)

    report = found.settle()
    assert (report.status, report.reason) == (
        "unknown",
        f"{world.checkpoints.uri(world.key)} disappeared while it was settled",
    )


def test_a_skipped_write_whose_document_is_gone_is_unknown(children: Children, path: Path) -> None:
    """Its block has sent nothing, and an earlier attempt has committed it."""
    found = children.new()
    job = found.world.job()
    found.opened(job)
    journal.append(path, "write_skipped", nonce=job.attempt.nonce)

    report = found.settle()

    assert (report.status, report.reason) == (
        "unknown",
        f"an earlier attempt has committed the write, but {found.world.checkpoints.uri(found.world.key)} is gone",
    )


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("UnknownOutcomeError", "unknown", "the table holds it"),
        ("StepError", "rolled_back", "the block was not entered (StepError: the table holds it)"),
    ],
)
def test_a_block_that_was_not_entered_leaves_a_verdict(children: Children, kind: str, status: str, reason: str) -> None:
    """Its error may have said that the table holds the write, and that it is unknown whether it should stay."""
    found = children.new()
    job = found.world.job()
    found.opened(job)
    found.not_entered(job, kind, "the table holds it")

    report = found.settle()

    assert (report.status, report.reason, report.incomplete) == (status, reason, None)


@pytest.mark.parametrize("body", [b"damaged", b'{"schema_version": 2}'])
def test_an_unreadable_document_is_unknown(children: Children, body: bytes) -> None:
    """It is left as it is, and the reason says what is wrong."""
    found, job = children.claimed()
    found.passed(job)
    found.world.bucket.put(f"checkpoints/{found.world.key}.json", body)

    report = found.settle()

    assert (report.status, report.version) == ("unknown", None)
    assert report.reason
    assert found.world.bucket.contents()[f"checkpoints/{found.world.key}.json"] == body


def test_a_store_that_fails_is_unknown(children: Children) -> None:
    """No answer is no verdict."""
    world = World()
    found = children.new(world, Network(Fault.REFUSE, 1, and_all_after=True))
    job = world.job().begin()
    found.opened(job)
    found.passed(job)

    assert found.settle().status == "unknown"
    assert world.document.status is Status.IN_PROGRESS


def test_a_log_that_cannot_tell_is_unknown(children: Children, path: Path) -> None:
    """A gap or a damaged version alarms the owner, and never ends the supervisor."""
    for harm in ("gap", "damage"):
        found, job = children.claimed()
        found.passed(job)
        found.world.append_foreign()
        found.world.append_foreign()
        if harm == "gap":
            found.world.hide(key_of(2))
        else:
            found.world.lake.put(key_of(2), b"{")

        assert found.settle().status == "unknown"
        path.unlink()


def test_without_a_budget_nothing_is_guessed(children: Children) -> None:
    """Out of time is unknown, and the document stays open."""
    found, job = children.claimed()
    found.passed(job)
    job.land()

    report = found.settle(budget_ms=0)

    assert report.status == "unknown"
    assert found.world.document.status is Status.IN_PROGRESS
    assert found.network.mutations == 0


def test_a_denied_read_is_unknown(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while reading is not the absence of a document."""
    found, _ = children.claimed()

    def denied(_: str, **_of_a_size: int | None) -> None:
        raise StoreError("GET: denied", denied=True)

    monkeypatch.setattr(found.world.bucket, "get", denied)

    assert found.settle().status == "unknown"
