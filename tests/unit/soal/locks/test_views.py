"""The views of locks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from safewriter.coordination.backend import Stored
from safewriter.coordination.configuration import Edge, Mode
from safewriter.coordination.record import Job, Record
from scripts.provision.place import ROOT
from soal.console.output import Output
from soal.locks.report import LockReport, lock_view, locks_view, turns_view
from tests.unit.soal.locks.examples import STORED

EMPTY = LockReport.of_lock(Stored(Record("L"), 1), 10)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_the_guides_example_is_what_the_command_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """If this fails, copy the output into docs/guides/coordination.md."""
    Output(as_json=False).show(lock_view(LockReport.of_lock(STORED, 10)))
    guide = (ROOT / "docs/guides/coordination.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```text\n(ENGAGEMENT_HVS_DATA: .*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert lines(capsys.readouterr().out) == lines(example)


def test_a_list_has_a_row_for_each_lock(capsys: pytest.CaptureFixture[str]) -> None:
    """Each lock has a row, also a free one; without locks there is a sentence."""
    Output(as_json=False).show(locks_view([LockReport.of_lock(STORED, 10), EMPTY]))
    Output(as_json=False).show(locks_view([]))
    _, held, free, none = lines(capsys.readouterr().out)
    assert re.split(" {2,}", held.strip()) == [
        "ENGAGEMENT_HVS_DATA",
        "Mutation",
        "3",
        "2026-11-20 08:04:10Z",
        "2",
        "1",
    ]
    assert re.split(" {2,}", free.strip()) == ["L", "free", "0", "0", "0"]
    assert none == "no lock"


def test_a_free_lock_without_a_past(capsys: pytest.CaptureFixture[str]) -> None:
    """A free lock without a past has no empty tables."""
    Output(as_json=False).show(lock_view(EMPTY))
    Output(as_json=False).show(turns_view(EMPTY))
    assert lines(capsys.readouterr().out) == ["L: free, token 0", "L: no turn has ended"]


@pytest.mark.parametrize(
    ("job", "edge"),
    [
        (Job("A"), "hard"),
        (Job("A", edge=Edge.SOFT), "soft"),
        (Job("A", edge=Edge.LAGGED, lag=2), "lagged 2"),
        (Job("A", Mode.STRICT), "strict"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_edge_has_its_words(job: Job, edge: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each edge has its text, with the lag; strict order has its own."""
    Output(as_json=False).show(lock_view(LockReport.of_lock(Stored(Record("L", jobs={"B": job}), 1), 10)))
    assert re.split(" {2,}", lines(capsys.readouterr().out)[2].strip())[2] == edge


@pytest.mark.parametrize(("is_alive", "state"), [(True, "its session lives"), (False, "its session has ended")])
def test_a_service_with_sessions_knows_more(
    is_alive: bool,  # noqa: FBT001 - a row's field
    state: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With sessions the view says whether the holder's session lives, besides the renewals."""
    Output(as_json=False).show(lock_view(LockReport.of_lock(replace(STORED, is_alive=is_alive), 10)))
    assert lines(capsys.readouterr().out)[1] == f"  renewed 3 times; lease 30 s; {state}"
