"""A checkpoint document's list of attempts tells who created the table, and first forgets those that are clean."""

from __future__ import annotations

import dataclasses

import pytest

from safewriter.record.document import ATTEMPTS_MAX, CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.world import World


@pytest.mark.parametrize(("version_before", "created"), [(-1, True), (0, False), (1, False)])
def test_only_who_began_without_the_table_may_have_created_it(version_before: int, *, created: bool) -> None:
    """A table has a version from its creation on, which is 0."""
    attempt = World().job().begin().document.attempt

    assert dataclasses.replace(attempt, version_before=version_before).may_have_created is created


def test_a_new_claim_forgets_why_an_undo_was_refused() -> None:
    """It belongs to the earlier attempt."""
    world = World()
    document = world.job().begin().document
    refused = document.moved(Status.ROLLED_BACK, reason="killed", undo_refused="append-only")

    again = refused.claimed(dataclasses.replace(document.attempt, epoch=2), CommitPoint.WRITE, "delivery")

    assert (again.reason, again.undo_refused) == (None, None)


def test_of_many_attempts_one_that_is_clean_is_forgotten_before_an_older_one_that_is_not() -> None:
    """Its leftovers would be forgotten with it."""
    world = World()
    attempt = world.job().begin().document.attempt
    world.settle(Cause.KILLED)
    kept = tuple(
        dataclasses.replace(attempt, epoch=number + 1, nonce=f"{number:016x}", cleaned=number == 3)
        for number in range(ATTEMPTS_MAX)
    )
    full = dataclasses.replace(world.document, attempts=kept)

    after = full.claimed(dataclasses.replace(attempt, epoch=2, nonce="f" * 16), CommitPoint.WRITE, "delivery")

    assert [one.nonce for one in after.attempts] == [one.nonce for one in kept if not one.cleaned] + ["f" * 16]
