"""Ids of copies of one process, whose kernels give equal bytes."""

from __future__ import annotations

from itertools import count

import pytest

from safewriter import entropy


@pytest.fixture(autouse=True)
def _one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    monkeypatch.setattr("time.time_ns", lambda: 0)


def draws(*outside: str) -> str:
    """Return the first id of a copy."""
    pool = entropy._Pool()
    pool.renew(*outside)
    return pool.draw()


def test_copies_differ_by_what_came_from_outside() -> None:
    """Nothing else tells them apart; texts do not run into each other."""
    ids = [draws(*texts) for texts in ((), ("a",), ("b",), ("a", "b"), ("ab",))]
    assert len(set(ids)) == len(ids)
    assert draws("a") == draws("a")


def test_a_copy_differs_by_all_that_it_was_ever_renewed_with() -> None:
    """Two events with one id do not bring two copies together that earlier events have told apart."""
    first, second = entropy._Pool(), entropy._Pool()
    first.renew("before")
    for pool in (first, second):
        pool.renew("event")
    assert first.draw() != second.draw()


@pytest.mark.parametrize("name", ["SOAL_RUN_ID", "SOAL_REQUEST_ID"])
def test_a_process_of_an_attempt_draws_with_the_names_of_the_attempt(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A job's Python is a fork of a process that has imported the module before the event; its memory may be a copy."""
    first, second = entropy._Pool(), entropy._Pool()
    monkeypatch.setenv(name, "a")
    drawn = first.draw()
    monkeypatch.setenv(name, "b")
    assert second.draw() != drawn


def test_copies_with_clocks_of_their_own_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is the second line, for two copies with one event."""
    clock = count()
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    assert draws("a") != draws("a")


def test_two_draws_within_one_tick_of_the_clock_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel's bytes: two threads may draw at once."""
    kernel = count()
    pool = entropy._Pool()
    monkeypatch.setattr("os.urandom", lambda size: next(kernel).to_bytes(size))
    assert pool.draw() != pool.draw()


def test_an_id_is_32_hexadecimal_digits_and_new_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are the kernel's, too."""
    monkeypatch.undo()
    ids = {entropy.unique_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in ids)
