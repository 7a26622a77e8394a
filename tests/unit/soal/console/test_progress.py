"""The console shows a command's progress and a job's messages on a terminal only, and its log on request."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from soal.console.progress import Counting, JobProgress, log_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"level": "INFO", "message": "WARN TaskSetManager: lost", "source": "job"}', "WARN TaskSetManager: lost"),
        ('{"_aws": {"CloudWatchMetrics": []}, "ColdStart": 1}', None),
        ("{not json", "{not json"),
        ("21 Nov 2026 03:07:08,683 [INFO] (rapid) INIT START(type: on-demand, phase: init)", None),
        ("START RequestId: f67e4a1b Version: $LATEST", None),
        ("REPORT RequestId: f67e4a1b\tDuration: 1 ms", None),
        ("  ", None),
        ("a line of the handler", "a line of the handler"),
    ],
)
def test_a_person_sees_what_the_job_says(raw: str, text: str | None) -> None:
    """Messages of log entries and plain lines are shown; metrics and the emulator's lines are not."""
    assert log_text(raw) == text


def test_progress_is_silent_where_nobody_looks() -> None:
    """Nothing is written to a stream that is not a terminal."""
    stream = io.StringIO()
    with JobProgress(Console(file=stream), "running") as progress:
        progress.line("a line")
    assert stream.getvalue() == ""


def test_the_log_is_printed_when_it_is_asked_for() -> None:
    """With `shows_log` each line is printed verbatim, brackets included, after a prefix: it is not a line of `soal`."""
    stream = io.StringIO()
    with JobProgress(Console(file=stream), "running", shows_log=True) as progress:
        progress.line("see [/bold] this")
        progress.line("soal: all is well")
        progress.line("  To do: nothing")
        progress.line(json.dumps({"message": "two\nsoal: lines"}))
    shown = ("see [/bold] this", "soal: all is well", "  To do: nothing", "two", "soal: lines")
    assert stream.getvalue().splitlines() == [f"| {line}" for line in shown]


def test_what_the_file_of_the_log_has_is_not_all_on_the_console() -> None:
    """There the job's own lines are shown, without Java's frames; the result repeats the handler's. The file has all,
    and no control character.
    """
    frame, handlers = "\tat org.apache.spark.Dataset.collect(Dataset.scala:1)", "rolled_back: the script failed"
    left_out = ("\tat ... run in separate thread using org.apache.spark.util.ThreadUtils ... ()", "\t... 12 more")
    words = ("Py4JJavaError: no \x1b[2J", frame, *left_out, "Caused by: java.io.IOException: gone")
    shown, kept = io.StringIO(), io.StringIO()
    with JobProgress(Console(file=shown), "running", shows_log=True, log=kept) as progress:
        for word in words:
            progress.line(json.dumps({"message": word, "source": "job"}))
        progress.line(json.dumps({"message": handlers}))
        progress.line("RuntimeError: a crash")
    assert shown.getvalue().splitlines()[1:] == ["| Caused by: java.io.IOException: gone", "| RuntimeError: a crash"]
    assert kept.getvalue().splitlines() == [
        r"Py4JJavaError: no \x1b[2J",
        *words[1:],
        handlers,
        "RuntimeError: a crash",
    ]


def test_a_terminal_sees_the_last_line_whatever_is_in_it() -> None:
    """Text that looks like markup does not disturb the display."""
    stream = io.StringIO()
    with JobProgress(Console(file=stream, force_terminal=True, width=120), "running") as progress:
        progress.line("closing [/nothing] bracket [red]")
    assert "closing [/nothing] bracket [red]" in stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_how_far_it_is_shows_on_a_terminal_only(terminal: object) -> None:
    """On a terminal a name that looks like markup is shown verbatim."""
    said = io.StringIO()
    with Counting(Console(file=said, force_terminal=bool(terminal), width=120), "[red]looking") as counting:
        counting.show(1234)
        counting.says("deleting")
        counting.show(7)
    assert ("deleting" in said.getvalue()) is bool(terminal)
    assert ("7 objects" in said.getvalue()) is bool(terminal)
