"""`soal runs list` fits the terminal: a line for each run, with the columns for which there is room."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from soal.console.screen import Screen
from soal.runs.history import Application
from soal.runs.run import RunView, WriteView
from soal.runs.views import applications_view, run_view, runs_view

UNTOLD = ("step", "version", "bytes", "reason", "undo_refused", "incomplete", "settled_by", "settled_ms", "life", "why")
NAMES = ("write_key", "run_key", "table", "format", "commit_point", "checkpoint")
FIELDS: dict[str, Any] = {**dict.fromkeys(NAMES, "x"), **dict.fromkeys(UNTOLD)}
WRITE = WriteView(**FIELDS, status="committed", attempts=1, rows=22_248, started_ms=1)
RUN = RunView(
    run_key="0123456789abcdef0123456789abcdef",
    entry_point="s3://soal-scripts/nightly/accommodations_delta.py",
    state="SUCCESS",
    attempt=1,
    started_ms=1_795_778_000_000,
    ended_ms=1_795_778_012_345,
    life=None,
    why=None,
    writes=(WRITE,),
)
FAILED = replace(RUN, run_key="nightly", state="INCOMPLETE", reason="the deadline came before the script's end; " * 3)


def shown(view: Any, width: int) -> list[str]:
    stream = io.StringIO()
    Screen(file=stream, width=width).print(*view.parts)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "names"),
    [
        (80, "run script state began, UTC"),
        (100, "run script state began, UTC why"),
        (160, "run script state attempt began, UTC took writes rows why"),
    ],
)
def test_each_run_has_one_line_whatever_the_terminal(width: int, names: str) -> None:
    """Its key, its script and its state are always there; the key is whole, for `soal runs show`."""
    header, *lines = shown(runs_view([RUN, FAILED]), width)
    assert header.split() == names.split()
    assert len(lines) == 2
    assert max(map(len, (header, *lines))) <= width
    assert lines[0].startswith(f" {RUN.run_key}  accommodations_")
    assert ("the deadline" in lines[1]) is ("why" in names)


def test_where_nothing_has_failed_there_is_room_for_more() -> None:
    """A column without a word is left out, such as the reasons, and the scripts of jobs that no handler ran."""
    header, _ = shown(runs_view([RUN]), 100)
    assert header.split() == ["run", "script", "state", "attempt", "began,", "UTC", "took", "rows"]
    header, _ = shown(runs_view([replace(RUN, entry_point=None)]), 100)
    assert "script" not in header


def test_one_run_has_its_whole_script_and_reason_below() -> None:
    """So its line needs neither."""
    header, line, *below = shown(run_view(FAILED), 160)
    assert "2026-11-27 11:13:20Z" in line
    assert not {"script", "why"} & {*header.split()}
    assert below[0].rstrip() == str(FAILED.reason).strip()
    assert below[-1].startswith(f"script {RUN.entry_point}")


def test_the_applications_of_a_run_are_shown_with_spark_s_rest_api() -> None:
    """A program asks it; its address is the server's, which is the same for all."""
    host = "http://127.0.0.1:18080"
    found = [
        Application(
            number,
            "r",
            f"local-{number}",
            is_whole=True,
            url=f"{host}/history/local-{number}/jobs/",
            api=f"{host}/api/v1/applications/local-{number}",
        )
        for number in (1, 2)
    ]
    lines = shown(applications_view(found), 100)
    assert lines[-1] == f"Spark's REST API: {host}/api/v1/applications"
    assert len(lines) == 4
    assert shown(applications_view([]), 100) == ["no application: Spark never started"]


def test_a_write_is_shown_with_its_key_and_what_a_person_must_know_of_it() -> None:
    """`soal recover --write` takes the key; a write that is not whole needs another answer than a mere reason."""
    incomplete = replace(WRITE, write_key="sw-1", reason="success()", incomplete="a statement has failed")
    refused = replace(WRITE, write_key="sw-2", reason="an error", undo_refused="rows were added since")

    page = "\n".join(shown(run_view(replace(RUN, writes=(incomplete, refused))), 160))

    assert "sw-1" in page
    assert "not whole: a statement has failed" in page
    assert "sw-2" in page
    assert "rows were added since" in page
    assert "an error" not in page
