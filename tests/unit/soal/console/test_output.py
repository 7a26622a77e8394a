"""The console prints a view as JSON for programs or as parts for people, and everything else to stderr."""

from __future__ import annotations

import json

import pytest
from rich.table import Table
from rich.text import Text

from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.view import View, columns, styled

LONG = "x" * 300


def view() -> View:
    table = columns("what", "how many", right=("how many",))
    table.add_row(styled("committed"), "1")
    return View({"é": [1, None]}, (table, Text(f"[bold]{LONG}"), "the end"))


def test_a_program_gets_the_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json a view is one JSON value on stdout, and a stream is one line per view."""
    out = Output(as_json=True)
    out.show(view())
    shown = capsys.readouterr()
    assert (json.loads(shown.out), shown.err) == ({"é": [1, None]}, "")
    out.stream(view())
    out.stream(view())
    assert capsys.readouterr().out.splitlines() == ['{"é": [1, null]}'] * 2


def test_a_person_gets_the_parts(capsys: pytest.CaptureFixture[str]) -> None:
    """Parts are printed below one another; a pipe gets no escape codes and no wrapped texts."""
    Output(as_json=False).show(view())
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert [line.split() for line in text.splitlines()] == [
        ["what", "how", "many"],
        ["committed", "1"],
        [f"[bold]{LONG}"],
        ["the", "end"],
    ]


def test_a_table_is_folded(capsys: pytest.CaptureFixture[str]) -> None:
    """A long cell is wrapped, not truncated."""
    table = Table(box=None)
    table.add_column("what", overflow="fold")
    table.add_row(LONG)
    Output(as_json=False).show(View(None, (table,)))
    assert capsys.readouterr().out.count("x") == len(LONG)


@pytest.mark.parametrize("as_json", [True, False])
def test_talk_and_problems_go_to_stderr(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> None:
    """In both forms stdout has only data, and a problem has a remedy."""
    out = Output(as_json=as_json)
    out.remark("started")
    out.problem(Problem("no [endpoint]", todo="start one"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == ["started", "soal: no [endpoint]", "  To do: start one"]
