"""The doctor's view prints each finding with its remedy, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soal.console.output import Output
from soal.doctor.finding import Finding, findings_view

if TYPE_CHECKING:
    import pytest

FINDINGS = (Finding("Java", "fail", "there is none", "run scripts/setup"), Finding("jars", "ok", "all"))


def test_a_program_reads_each_finding() -> None:
    """In JSON a finding without a remedy has an empty string."""
    assert findings_view(FINDINGS).document == [
        {"name": "Java", "status": "fail", "detail": "there is none", "remedy": "run scripts/setup"},
        {"name": "jars", "status": "ok", "detail": "all", "remedy": ""},
    ]


def test_findings_for_a_person_carry_their_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """A finding's remedy is printed below its detail."""
    Output(as_json=False).show(findings_view(FINDINGS))
    text = capsys.readouterr().out
    assert "there is none" in text
    assert "To do: run scripts/setup" in text


def test_a_person_reads_a_remedy_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Further findings with the same one refer to the first."""
    findings = [Finding(f"job.py:{line}", "fail", "imports x", "name it in pyFiles") for line in (3, 5, 8)]
    Output(as_json=False).show(findings_view(findings))
    text = capsys.readouterr().out
    assert (text.count("name it in pyFiles"), text.count("To do: as for job.py:3")) == (1, 2)
