"""A journal that is damaged, deleted or replaced, or that holds foreign lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.record import journal
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.supervised import BUDGET_MS, Children
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_commit_is_known_although_the_job_has_deleted_its_journal(children: Children, path: Path) -> None:
    """The document on S3 is the truth, and the journal had named it before."""
    found, job = children.claimed()
    found.passed(job)
    job.land()
    supervision = found.supervision()
    path.unlink()

    (report,) = supervision.settle(budget_ms=BUDGET_MS)

    assert (report.status, report.version) == ("committed", 2)
    assert supervision.doubt() is None
    check(found.world)


def _truncate(path: Path) -> None:
    path.open("wb").close()


def _replace(path: Path) -> None:
    path.unlink()
    path.touch()


@pytest.mark.parametrize("damage", [_truncate, _replace])
def test_a_journal_that_was_emptied_or_replaced_does_not_hide_a_commit(
    children: Children, path: Path, damage: Callable[[Path], None]
) -> None:
    """Writes read before are settled, with a fence, as a commit's line may be lost; there may be further writes."""
    found, job = children.claimed()
    supervision = found.supervision()
    supervision.renew_leases()
    damage(path)
    job.land()

    (report,) = supervision.settle(budget_ms=BUDGET_MS)

    assert (report.status, report.version) == ("committed", 2)
    assert "journal" in (supervision.doubt() or "")
    check(found.world)


def test_a_line_of_a_stranger_names_no_write(children: Children, path: Path) -> None:
    """Whatever its fields are, the guard's own lines are settled."""
    found, _ = children.claimed()
    journal.append(path, "write_opened", nonce=["a"], writeKey={})
    journal.append(path, "commit_passed", nonce=["a"])
    journal.append(path, "write_closed", nonce=["a"])

    assert found.settle().status == "rolled_back"


@pytest.mark.parametrize("torn", [b'{"event":"to', b"\x00\x00\n"])
def test_a_damaged_journal_is_not_believed_to_be_silent(children: Children, path: Path, torn: bytes) -> None:
    """A line of the gate may be lost in it, so the table is fenced."""
    found, job = children.claimed()
    with path.open("ab") as file:
        file.write(torn)
    found.passed(job)
    job.prepare()

    report = found.settle()

    assert report.status == "rolled_back"
    assert not job.rebase()
    check(found.world)


def test_a_torn_line_may_have_been_a_commit(children: Children, path: Path) -> None:
    """A write without a document is unknown then, never rolled back."""
    world = World()
    one = children.new(world)
    one.opened(world.job())
    with path.open("ab") as file:
        file.write(b"torn\n")
    assert one.settle().status == "unknown"


@pytest.mark.parametrize("more", [{"table": 5}, {"step": 5}])
def test_a_line_of_other_types_names_no_write(children: Children, more: dict[str, Any]) -> None:
    """The guard has not written it."""
    world = World()
    one = children.new(world)
    one.opened(world.job(), **more)
    assert one.supervision().settle(budget_ms=BUDGET_MS) == ()
