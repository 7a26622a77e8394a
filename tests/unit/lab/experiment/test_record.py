"""The experiment's record of a run is a line of JSON that begins with the paper's fields, under their names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.lab.experiment.plan import PLANS, Run
from tests.lab.results import append
from tests.unit.lab.experiment.records import record

if TYPE_CHECKING:
    from pathlib import Path


def test_the_paper_s_fields_are_there_under_its_names(tmp_path: Path) -> None:
    """So that its own scripts could read ours."""
    append(tmp_path / "runs.jsonl", record(Run(PLANS["paper"][0], 1)))
    line = json.loads((tmp_path / "runs.jsonl").read_text())
    theirs = "run_id, table_format, dataset, kill_phase, use_safe_writer, outcome, duration_ms, returncode, timestamp"
    assert ", ".join([*line][:9]) == theirs
