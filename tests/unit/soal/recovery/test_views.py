"""`soal recover` shows verdicts and a dry run's changes, for programs and for people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from soal.console.document import document_of
from soal.console.output import Output
from soal.recovery import Recovered, recovered_view

if TYPE_CHECKING:
    import pytest

ONE = Recovered(
    write_key="sw-1",
    run_key="nightly",
    table="s3://lake/[t]",
    step=None,
    before="in_progress",
    status="rolled_back",
    action="none",
    reason="deadline",
    undo_refused=None,
    checkpoint="s3://c/checkpoints/sw-1.json",
)


def test_a_person_reads_verdicts_and_the_changes_of_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The view shows verdicts and a dry run's changes; an unreadable write is named by its key."""
    dry = replace(ONE, changes=("PUT s3://lake/x",), changes_more=1_200)
    unread = replace(ONE, write_key="sw-2", run_key=None, table=None)
    Output(as_json=False).show(recovered_view([dry, unread]))
    text = capsys.readouterr().out
    for part in ("s3://lake/[t]", "nothing to do", "deadline", "  PUT s3://lake/x", "  and 1,200 more", "sw-2"):
        assert part in text


def test_a_program_reads_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Without writes the JSON is an empty list, and the text a sentence."""
    assert recovered_view([ONE]).document == document_of([ONE])
    assert recovered_view([]).document == []
    Output(as_json=False).show(recovered_view([]))
    assert capsys.readouterr().out == "no write to recover\n"
