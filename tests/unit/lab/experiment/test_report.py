"""The experiment's report is one page with all tables and figures, and names violations and missing runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.lab.bench.record import about
from tests.lab.experiment.plan import PLANS, Run
from tests.lab.experiment.report import report_of
from tests.lab.results import append
from tests.unit.lab.experiment.records import record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    spans = [{"operation": "PutObject", "key_class": "data", "began_ms": 1, "ended_ms": 20}]
    for cell in PLANS["all"]:
        append(tmp_path / "runs.jsonl", record(Run(cell, 1), requests=spans))
    (tmp_path / "manifest.json").write_text(json.dumps({**about(), "plan": "all", "scale": 0.001, "seed": 1}))
    return tmp_path


def test_the_page_holds_all_tables_and_pictures_in_itself(folder: Path) -> None:
    """It can be sent as one file."""
    made = report_of(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(f"<h2>{one['title']}</h2>" in page for one in made.document["tables"])
    assert page.count("src='data:image/svg+xml;base64,") == 5
    assert "src='http" not in page
    assert made.violations == 0


def test_each_figure_is_there_as_svg_and_as_png(folder: Path) -> None:
    """For those who can show one and not the other."""
    files = {path.name: path for path in report_of(folder).files}
    for name in ("outcomes", "gap", "timeline", "verdicts", "recovery"):
        assert ET.parse(files[f"{name}.svg"]).getroot().tag.endswith("svg")  # noqa: S314 - our own
        assert files[f"{name}.png"].read_bytes().startswith(b"\x89PNG")


def test_a_guarded_run_that_broke_the_promise_is_a_violation(folder: Path) -> None:
    """The command's exit code tells it."""
    cell = next(one for one in PLANS["paper"] if one.use_safe_writer)
    append(folder / "runs.jsonl", record(Run(cell, 2), truth="damaged"))
    assert report_of(folder).violations == 1


def test_a_report_knows_how_many_runs_of_the_plan_are_missing(folder: Path) -> None:
    """A part of an experiment looks like the whole otherwise."""
    made = report_of(folder)
    assert (made.missing, made.document["planned"]) == (0, len(PLANS["all"]))
    lines = (folder / "runs.jsonl").read_text().splitlines(keepends=True)
    (folder / "runs.jsonl").write_text("".join(lines[:-2]))
    assert report_of(folder).missing == 2
    assert f"{len(lines) - 2} of {len(lines)} runs" in (folder / "report.html").read_text()


def test_a_folder_without_runs_is_no_report(tmp_path: Path) -> None:
    """It says so."""
    with pytest.raises(FileNotFoundError, match="holds no runs"):
        report_of(tmp_path)
