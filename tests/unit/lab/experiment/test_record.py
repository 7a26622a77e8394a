from __future__ import annotations

import json
from pathlib import Path

from tests.lab.experiment import record as module
from tests.lab.experiment.plan import PLANS, Run
from tests.lab.experiment.record import RunRecord
from tests.lab.results import append
from tests.unit.lab.experiment.records import record


def test_the_paper_s_fields_are_there_under_its_names(tmp_path: Path) -> None:
    """So that its own scripts could read ours."""
    append(tmp_path / "runs.jsonl", record(Run(PLANS["paper"][0], 1)))
    line = json.loads((tmp_path / "runs.jsonl").read_text())
    theirs = "run_id, table_format, dataset, kill_phase, use_safe_writer, outcome, duration_ms, returncode, timestamp"
    assert ", ".join([*line][:9]) == theirs


def test_the_schema_beside_the_module_is_that_of_a_line() -> None:
    """`python -m tests.lab.experiment.record > tests/lab/experiment/record.schema.json` writes it."""
    kept = Path(module.__file__).with_name("record.schema.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == RunRecord.model_json_schema()
