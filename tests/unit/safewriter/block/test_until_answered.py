"""A settler asks S3 again while it does not answer, with growing pauses, until its time is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.block.until_answered import until_answered
from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.objects import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Asked:
    """Each call takes a second and raises the next error, or succeeds after the last one."""

    def __init__(self, errors: Iterable[Exception]) -> None:
        self.errors = iter(errors)
        self.now_s = 0.0
        self.naps: list[float] = []

    def __call__(self) -> None:
        self.now_s += 1.0
        for error in self.errors:
            raise error

    def until_answered(self, time_s: float) -> None:
        until_answered(self, lambda waited_s: time_s - waited_s, self.naps.append, lambda: self.now_s)


def unknown(cause: Exception | None) -> UnknownOutcomeError:
    error = UnknownOutcomeError("nobody can tell")
    error.__cause__ = cause
    return error


def test_the_pauses_double_up_to_eight_seconds() -> None:
    """A short outage costs little, a long one is not hammered."""
    asked = Asked([StoreError("SlowDown")] * 7)
    asked.until_answered(1_000)
    assert asked.naps == [0.5, 1, 2, 4, 8, 8, 8]


@pytest.mark.parametrize(
    ("time_s", "naps"),
    [(0.5, []), (1, []), (1.25, [0.25]), (1.5, [0.5]), (2.5, [0.5]), (3.25, [0.5, 0.75]), (3.5, [0.5, 1])],
)
def test_the_time_of_asking_counts_and_the_last_pause_is_what_is_left(time_s: float, naps: list[float]) -> None:
    """If each request timed out, a loop that counts only the pauses would run far past the deadline."""
    asked = Asked([StoreError("SlowDown")] * 9)
    with pytest.raises(StoreError):
        asked.until_answered(time_s)
    assert asked.naps == naps


@pytest.mark.parametrize("error", [StoreError("SlowDown"), unknown(StoreError("SlowDown"))])
def test_what_s3_did_not_answer_is_asked_again(error: Exception) -> None:
    """It may answer a moment later."""
    asked = Asked([error])
    asked.until_answered(60)
    assert asked.naps == [0.5]


@pytest.mark.parametrize(
    "error",
    [
        StoreError("AccessDenied", denied=True),
        unknown(StoreError("AccessDenied", denied=True)),
        unknown(None),
        NotCommittedError("not there"),
    ],
)
def test_what_a_moment_cannot_change_is_raised_at_once(error: Exception) -> None:
    """A missing permission, a table that does not decide, an answer."""
    asked = Asked([error])
    with pytest.raises(type(error)) as raised:
        asked.until_answered(60)
    assert raised.value is error
    assert asked.naps == []
