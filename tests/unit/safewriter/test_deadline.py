"""A process takes its deadline from handler, timeout or Lambda's limit, and tells its remaining time."""

from __future__ import annotations

import io
import os
import time

import pytest

from safewriter import deadline
from safewriter.deadline import Deadline, epoch_ms, milliseconds
from safewriter.errors import SettingError


def test_the_clock_counts_milliseconds_since_the_epoch() -> None:
    """The wall clock of the machine, as a whole number."""
    before = int(time.time() * 1000) - 1

    assert before <= epoch_ms() <= int(time.time() * 1000) + 1


def test_remaining_time_goes_below_zero() -> None:
    """A deadline that has passed is still a deadline."""
    assert Deadline(1_000, 0, lambda: 400).remaining_ms() == 600
    assert Deadline(1_000, 0, lambda: 1_500).remaining_ms() == -500


def test_the_handlers_deadline_wins() -> None:
    """The absolute deadline counts, not Lambda's default."""
    found = Deadline.from_environment(
        {"SOAL_DEADLINE_EPOCH_MS": "4000000000000", "LAMBDA_TIMEOUT_MS": "5", "AWS_LAMBDA_FUNCTION_NAME": "f"}
    )

    assert found is not None
    assert found.at_ms == 4_000_000_000_000


def test_a_deadline_of_zero_is_a_deadline() -> None:
    """Zero is a value: long passed, not absent."""
    found = Deadline.from_environment({"SOAL_DEADLINE_EPOCH_MS": "0"}, clock=lambda: 7)

    assert found is not None
    assert (found.at_ms, found.started_ms, found.remaining_ms()) == (0, 0, -7)


def test_a_timeout_of_zero_is_a_deadline() -> None:
    """A timeout of zero has passed when the process starts."""
    found = Deadline.from_environment({"LAMBDA_TIMEOUT_MS": "0"})

    assert found is not None
    assert found.remaining_ms() <= 0


def test_a_timeout_counts_from_the_start_of_the_process() -> None:
    """Imports and the start of the JVM are part of the time that is given."""
    found = Deadline.from_environment({"LAMBDA_TIMEOUT_MS": "60000"})

    assert found is not None
    assert found.at_ms - found.started_ms == 60_000
    assert found.started_ms < epoch_ms()


def test_on_lambda_the_longest_timeout_is_assumed() -> None:
    """If the timeout is unknown, a function has Lambda's limit."""
    found = Deadline.from_environment({"AWS_LAMBDA_FUNCTION_NAME": "f"})

    assert found is not None
    assert found.at_ms - found.started_ms == 900_000


def test_off_lambda_there_is_no_deadline() -> None:
    """A job on a cluster runs as long as it likes."""
    assert Deadline.from_environment({}) is None


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5", "1e3", " 5", "٣", "0x10"])
@pytest.mark.parametrize("name", ["SOAL_DEADLINE_EPOCH_MS", "LAMBDA_TIMEOUT_MS"])
def test_a_bad_value_is_an_error_that_names_the_variable(name: str, text: str) -> None:
    """What is not a whole number of milliseconds is refused."""
    with pytest.raises(SettingError, match=name) as caught:
        Deadline.from_environment({name: text})

    assert caught.value.name == name


def test_a_missing_number_is_none() -> None:
    """Not set and zero are different."""
    assert milliseconds({}, "X") is None
    assert milliseconds({"X": "0"}, "X") == 0


def test_two_deadlines_of_the_same_time_are_equal() -> None:
    """The clock is a tool, not part of the value."""
    assert Deadline(5, 1, lambda: 0) == Deadline(5, 1, lambda: 9)


def test_a_process_began_when_the_kernel_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its name looks like the end of a name in /proc."""
    files = {"/proc/self/stat": b"7 (a) R 0) S " + b"0 " * 18 + b"300050 0 0", "/proc/uptime": b"5000.75 9000.00"}
    monkeypatch.setattr(deadline, "open", lambda path, mode: io.BytesIO(files[path]), raising=False)
    monkeypatch.setattr(deadline, "epoch_ms", lambda: 1_800_000_000_000)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_CLK_TCK": 100}[name])

    assert deadline._process_start_ms() == 1_800_000_000_000 - 2_000_250


def test_a_deadline_shows_its_times_only() -> None:
    """The clock is of no use in an error message."""
    assert repr(Deadline(1_000, 0)) == "Deadline(at_ms=1000, started_ms=0)"


def test_the_beginning_that_the_handler_passes_counts() -> None:
    """Not the later start of this process; but never after the deadline."""
    passed = {"SOAL_DEADLINE_EPOCH_MS": "1000000", "SOAL_STARTED_EPOCH_MS": "400000"}

    assert Deadline.from_environment(passed) == Deadline(1_000_000, 400_000)
    assert Deadline.from_environment({**passed, "SOAL_STARTED_EPOCH_MS": "2000000"}) == Deadline(1_000_000, 1_000_000)


def test_a_timeout_that_is_set_wins_over_lambda_s_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function may have less than a quarter of an hour."""
    monkeypatch.setattr(deadline, "_process_start_ms", lambda: 5_000)

    found = Deadline.from_environment({"AWS_LAMBDA_FUNCTION_NAME": "soal", "LAMBDA_TIMEOUT_MS": "60000"})

    assert found == Deadline(65_000, 5_000)


def test_on_managed_instances_the_longest_timeout_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may be open for 90 minutes there, and nothing settles it after 15."""
    monkeypatch.setattr(deadline, "_process_start_ms", lambda: 5_000)

    found = Deadline.from_environment({"AWS_LAMBDA_FUNCTION_NAME": "soal", "AWS_LAMBDA_MAX_CONCURRENCY": "1"})

    assert found == Deadline(5_405_000, 5_000)
