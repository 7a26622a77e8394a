"""How much of a journal is read, what foreign lines may do to it, and what stays open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from safewriter.record import journal
from safewriter.record.journal import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the journal."""
    return tmp_path / "journal"


def events(found: Journal) -> list[str]:
    """The entries, without the journal's own first line."""
    return [entry.event for entry in found.entries() if entry.event != "journal_begun"]


def write(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_each_line_is_one_object_without_blanks(path: Path) -> None:
    """On a line of its own, even after a torn line."""
    with Journal(path):
        journal.append(path, "write_opened", table="a")

    assert path.read_bytes().startswith(b'\n{"event":"journal_begun","atMs":')
    assert path.read_bytes().endswith(b',"table":"a"}\n')


def test_an_append_leaves_no_descriptor_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long job appends thousands of times."""
    with Journal(path):
        handles: list[int] = []
        opens, closes = os.open, os.close

        def opening(*given: Any) -> int:
            handles.append(opens(*given))
            return handles[-1]

        def closing(handle: int) -> None:
            handles.remove(handle)
            closes(handle)

        monkeypatch.setattr(os, "open", opening)
        monkeypatch.setattr(os, "close", closing)

        journal.append(path, "write_opened")
        monkeypatch.undo()

        assert handles == []


def test_a_journal_is_closed_once_and_then_says_what_it_knew(path: Path) -> None:
    """Another file may have its descriptor by then."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        assert events(found) == ["write_opened"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(found._handle)
    with Path(os.devnull).open("rb") as other:
        found.__exit__(None, None, None)
        os.fstat(other.fileno())
        journal.append(path, "write_closed")

        assert events(found) == ["write_opened"]
        assert found.doubt() is None


def test_the_longest_line_is_written_and_one_byte_more_is_not(path: Path) -> None:
    """The limit is what one write(2) may write."""
    with Journal(path) as found:
        journal.append(path, "raised", text="")
        left = journal._LINE_MAX_BYTES - (path.stat().st_size - len(found._head))

        journal.append(path, "raised", text="x" * left)
        with pytest.raises(ValueError, match="is longer than"):
            journal.append(path, "raised", text="x" * (left + 1))
        assert len(found.entries()) == 3


@pytest.mark.parametrize("garbled", [journal._GARBLED_MAX, journal._GARBLED_MAX + 1])
def test_a_few_torn_lines_are_borne_and_a_stranger_s_text_is_not_read_on(path: Path, garbled: int) -> None:
    """A full disk tears a line now and then; more than that must not delay the supervisor."""
    bearable = garbled == journal._GARBLED_MAX
    with Journal(path) as found:
        write(path, b"no JSON\n" * garbled)
        assert events(found) == []
        journal.append(path, "raised")

        assert events(found) == (["raised"] if bearable else [])
        assert (found.doubt() is None) is bearable
        assert not found.is_whole()


def test_no_more_is_read_than_the_limit_also_in_several_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is not read, and the supervisor reports a doubt."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        assert events(found) == ["write_opened"]
        size = path.stat().st_size
        journal.append(path, "write_closed")
        monkeypatch.setattr(journal, "_FILE_MAX_BYTES", path.stat().st_size + 1)
        journal.append(path, "raised")

        assert events(found) == ["write_opened", "write_closed"]
        assert found.doubt() == f"the journal {path} is too long to be read"
        journal.append(path, "raised")
        assert events(found) == ["write_opened", "write_closed"]
        assert size < path.stat().st_size


def test_what_is_written_after_a_truncation_is_read_from_its_first_byte(path: Path) -> None:
    """It may name a write; the loss of other lines is known."""
    with Journal(path) as found:
        journal.append(path, "write_opened")
        assert events(found) == ["write_opened"]
        path.write_bytes(b"")
        assert events(found) == ["write_opened"]
        write(path, b'{"event":"write_closed","atMs":1}\n')

        assert events(found) == ["write_opened", "write_closed"]
        assert not found.is_whole()
