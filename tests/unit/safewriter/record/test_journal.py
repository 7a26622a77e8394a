"""The journal passes a job's lines to its supervisor, who notices torn, foreign, replaced and truncated ones."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.record import journal
from safewriter.record.journal import Entry, Event, Journal

_JAVA = Path(__file__).parents[4] / "image" / "logstore" / "src" / "main" / "java"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def events(found: Journal) -> list[str]:
    """Without the supervisor's own first line."""
    return [entry.event for entry in found.entries(since=1)]


def test_entries_are_read_in_the_order_in_which_they_were_written(path: Path) -> None:
    """Event, time and fields come back."""
    with Journal(path) as found:
        journal.append(path, "write_opened", number=1, nested={"a": [1]})
        journal.append(str(path), "write_closed", text="ü\n")
        _, first, second = found.entries()

    assert (first.event, first.fields) == ("write_opened", {"number": 1, "nested": {"a": [1]}})
    assert (second.event, second.fields) == ("write_closed", {"text": "ü\n"})
    assert first.at_ms <= second.at_ms


@given(st.integers(0, 200))
def test_a_torn_last_line_is_left_out(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Wherever a kill cuts the last line, the lines before it are read."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    with Journal(path) as found:
        journal.append(path, "write_opened")
        whole = path.read_bytes()
        journal.append(path, "write_closed", text="x" * 50)
        os.truncate(path, min(len(whole) + cut, path.stat().st_size - 1))

        assert events(found) == ["write_opened"]
        assert found.is_whole()


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"[]",
        b"null",
        b'{"event":"x"}',
        b'{"atMs":1}',
        b'{"event":"x","atMs":"soon"}',
        b'{"event":"x","atMs":1e999}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_line_that_is_no_entry_is_left_out_and_makes_the_journal_doubtful(path: Path, line: bytes) -> None:
    """Somebody else has written to it, and may have overwritten a line that mattered."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        with path.open("ab") as file:
            file.write(line + b"\n")
        journal.append(path, "write_closed")

        assert events(found) == ["write_opened", "write_closed"]
        assert not found.is_whole()


def test_a_torn_line_does_not_swallow_the_next_one_and_is_noticed(path: Path) -> None:
    """A full disk tears a line, there is room again: each line begins on its own."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        with path.open("ab") as file:
            file.write(b'{"event":"to')
        journal.append(path, "commit_passed", nonce="a")

        assert events(found) == ["write_opened", "commit_passed"]
        assert not found.is_whole()
        assert found.doubt() is None  # a job that could not write that line did not do what it announces


def test_a_line_that_does_not_fit_on_the_disk_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job must not do what it could not announce: a short write raises."""
    write = os.write
    with Journal(path):
        monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
        with pytest.raises(OSError, match="no room"):
            journal.append(path, "write_opened")


def test_a_journal_is_made_by_its_supervisor_only(path: Path) -> None:
    """The job cannot write to a journal that is not read, and another's file is not mistaken for it."""
    with pytest.raises(FileNotFoundError):
        journal.append(path, "write_opened")
    assert not path.exists()
    path.touch()
    with pytest.raises(FileExistsError):
        Journal(path)


def test_what_was_announced_is_read_although_the_file_is_gone(path: Path) -> None:
    """A deletion removes the name only; nothing can be announced afterwards, so nothing is missing."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        path.unlink()
        assert events(found) == ["write_opened"]
        with pytest.raises(FileNotFoundError):
            journal.append(path, "write_closed")
        assert found.is_whole()


def test_a_truncated_journal_is_noticed_and_what_was_read_is_kept(path: Path) -> None:
    """However much is appended afterwards."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        assert events(found) == ["write_opened"]
        path.open("wb").close()
        for _ in range(50):
            journal.append(path, "write_closed")
        assert events(found)[0] == "write_opened"
        assert "truncated" in (found.doubt() or "")
        assert not found.is_whole()


def test_a_journal_that_is_overwritten_before_anybody_has_read_it_is_noticed(path: Path) -> None:
    """Its first line holds a random token of the supervisor."""
    with Journal(path) as found:
        path.write_bytes(b"\n" * 10_000)
        assert "overwritten" in (found.doubt() or "")


def test_a_replaced_journal_is_noticed(path: Path) -> None:
    """Entries in the new file are not read."""
    with Journal(path) as found:
        path.rename(path.with_name("away"))
        assert found.doubt() is None
        path.write_bytes(path.with_name("away").read_bytes())
        assert "replaced" in (found.doubt() or "")
        assert not found.is_whole()


def test_a_whole_journal_is_whole(path: Path) -> None:
    """If each line is an entry, a missing line was never written, and the supervisor may rely on that."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        journal.append(path, "write_closed")

        assert found.is_whole()


def test_a_journal_that_is_too_long_to_be_read_is_doubtful(path: Path) -> None:
    """Reading is bounded, and the rest may hold anything."""
    line = b'{"event":"x","atMs":1,"fill":"' + b"x" * 1_000_000 + b'"}\n'
    with Journal(path) as found:
        with path.open("ab") as file:
            for _ in range(17):
                file.write(line)
        journal.append(path, "commit_passed", nonce="a")

        assert not found.is_whole()
        assert "too long" in (found.doubt() or "")


def test_a_line_is_bounded(path: Path) -> None:
    """An entry that one write(2) might not take whole is refused, and nothing of it is written."""
    with Journal(path) as found:
        with pytest.raises(ValueError, match="longer than 65536"):
            journal.append(path, "raised", text="x" * 70_000)

        assert events(found) == []


def test_a_journal_is_for_its_owner_only(path: Path) -> None:
    """It may hold paths and messages of the job."""
    with Journal(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_entries_are_values() -> None:
    """Two equal lines are equal entries."""
    assert Entry("raised", 1, {}) == Entry("raised", 1, {})


def test_a_line_that_is_being_written_is_read_when_it_is_whole(path: Path) -> None:
    """Half a line is no entry yet, its other half completes it, and no entry is read twice."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        assert events(found) == ["write_opened"]
        with path.open("ab") as file:
            file.write(b'\n{"event":"write_closed","at')
            file.flush()
            assert events(found) == ["write_opened"]
            file.write(b'Ms":1}\n')
        assert [entry.event for entry in found.entries(since=2)] == ["write_closed"]
        assert found.entries(since=3) == ()


def test_somebody_else_s_lines_are_doubtful_and_soon_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty lines cost nothing; the supervisor reads a hundred other lines at most, and keeps earlier entries."""
    looked_at: list[bytes] = []

    def parsed(line: bytes) -> object:
        looked_at.append(line)
        return json.loads(line)

    monkeypatch.setattr(journal, "parsed", parsed)
    with Journal(path) as found:
        journal.append(path, "write_opened")
        with path.open("ab") as file:
            file.write(b"\n" * 1_000_000 + b"x\n" * 1_000_000)

        assert events(found) == ["write_opened"]
        assert "somebody else" in (found.doubt() or "")
        assert len(looked_at) < 110


def test_a_journal_that_is_cut_behind_its_first_line_is_noticed(path: Path) -> None:
    """Also if the supervisor's own first line is still there."""
    with Journal(path) as found:
        head = path.stat().st_size
        journal.append(path, "raised")
        assert events(found) == ["raised"]
        os.truncate(path, head)
        assert found.doubt() is not None


def test_a_journal_without_room_for_its_first_line_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor gets the error about the full disk, and no descriptor stays open."""
    closed: list[int] = []
    close = os.close

    def closing(handle: int) -> None:
        closed.append(handle)
        close(handle)

    monkeypatch.setattr(os, "write", lambda handle, line: len(line) - 1)
    monkeypatch.setattr(os, "close", closing)

    with pytest.raises(OSError, match="no room for a line of the journal"):
        Journal(path)
    assert len(closed) == 1


def test_java_writes_only_events_of_the_list() -> None:
    """The names in the Java sources are on the list; mypy checks those in Python."""
    texts = (path.read_text() for path in _JAVA.rglob("*.java"))
    told = {name for text in texts for name in re.findall(r'\btell\("(\w+)"', text)}
    assert told
    assert told <= {*get_args(Event)}
