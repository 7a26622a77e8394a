from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter import journal
from safewriter.journal import Entry

if TYPE_CHECKING:
    from pathlib import Path


def test_entries_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """Event, time and fields come back."""
    path = tmp_path / "journal"
    journal.append(path, "one", number=1, nested={"a": [1]})
    journal.append(str(path), "two", text="ü\n")

    first, second = journal.read(path)

    assert (first.event, first.fields) == ("one", {"number": 1, "nested": {"a": [1]}})
    assert (second.event, second.fields) == ("two", {"text": "ü\n"})
    assert first.at_ms <= second.at_ms


def test_no_file_is_no_entry(tmp_path: Path) -> None:
    """A child that died before its first line has an empty journal, and that is the whole truth."""
    assert journal.read(tmp_path / "none") == ()
    assert journal.is_whole(tmp_path / "none")


@given(st.integers(0, 200))
def test_a_torn_last_line_is_left_out(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Wherever a kill cuts the last line, the lines before it are read."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal.append(path, "first")
    whole = path.read_bytes()
    journal.append(path, "second", text="x" * 50)
    cut_at = min(len(whole) + cut, path.stat().st_size - 1)
    os.truncate(path, cut_at)

    events = [entry.event for entry in journal.read(path)]

    # A line that lacks nothing but its end is an entry already.
    assert events in (["first"], ["first", "second"])
    assert journal.is_whole(path)


@pytest.mark.parametrize(
    "line", [b"garbage", b"[]", b"null", b'{"event":"x"}', b'{"atMs":1}', b'{"event":"x","atMs":"soon"}', b"\xff"]
)
def test_a_line_that_is_no_entry_is_left_out_and_makes_the_journal_doubtful(tmp_path: Path, line: bytes) -> None:
    """Somebody else has written into it, and may have written over a line that mattered."""
    path = tmp_path / "journal"
    journal.append(path, "before")
    with path.open("ab") as file:
        file.write(line + b"\n")
    journal.append(path, "after")

    assert [entry.event for entry in journal.read(path)] == ["before", "after"]
    assert not journal.is_whole(path)


def test_a_torn_line_does_not_swallow_the_next_one_and_is_noticed(tmp_path: Path) -> None:
    """A full disk tears a line, there is room again: each line begins on its own."""
    path = tmp_path / "journal"
    journal.append(path, "before")
    with path.open("ab") as file:
        file.write(b'{"event":"to')
    journal.append(path, "commit_passed", nonce="a")

    assert [entry.event for entry in journal.read(path)] == ["before", "commit_passed"]
    assert not journal.is_whole(path)


def test_a_line_that_does_not_fit_on_the_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who announces something must not do it unannounced: a short write raises."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    with pytest.raises(OSError, match="no room"):
        journal.append(tmp_path / "journal", "write_opened")


def test_a_journal_that_is_gone_is_not_complete(tmp_path: Path) -> None:
    """What it said is not known."""
    assert not journal.is_complete(tmp_path / "journal")
    journal.append(tmp_path / "journal", "one")
    assert journal.is_complete(tmp_path / "journal")


def test_a_whole_journal_is_whole(tmp_path: Path) -> None:
    """Nothing but entries."""
    path = tmp_path / "journal"
    journal.append(path, "one")
    journal.append(path, "two")

    assert journal.is_whole(path)


def test_a_journal_that_is_too_long_to_be_read_is_doubtful(tmp_path: Path) -> None:
    """Reading is bounded, and beyond the bound anything may stand."""
    path = tmp_path / "journal"
    line = b'{"event":"x","atMs":1,"fill":"' + b"x" * 1_000_000 + b'"}\n'
    with path.open("wb") as file:
        for _ in range(17):
            file.write(line)
    journal.append(path, "commit_passed", nonce="a")

    assert not journal.is_whole(path)


def test_a_line_is_bounded(tmp_path: Path) -> None:
    """An entry that one write(2) might not take whole is refused, and nothing of it is written."""
    with pytest.raises(ValueError, match="longer than 65536"):
        journal.append(tmp_path / "journal", "long", text="x" * 70_000)

    assert journal.read(tmp_path / "journal") == ()


def test_a_journal_is_for_its_owner_only(tmp_path: Path) -> None:
    """It may hold paths and messages of the job."""
    journal.append(tmp_path / "journal", "one")

    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_entries_are_values() -> None:
    """Two equal lines are equal entries."""
    assert Entry("a", 1, {}) == Entry("a", 1, {})


def test_a_follower_returns_each_entry_once(tmp_path: Path) -> None:
    """And a line that is being written only when it is whole."""
    path = tmp_path / "journal.jsonl"
    follower = journal.Follower(path)
    assert follower.fresh() == ()
    journal.append(path, "one")
    assert [entry.event for entry in follower.fresh()] == ["one"]
    assert follower.fresh() == ()
    with path.open("ab") as file:
        file.write(b'\n{"event":"two","at')
        file.flush()
        assert follower.fresh() == ()
        file.write(b'Ms":1}\n')
    assert [entry.event for entry in follower.fresh()] == ["two"]
