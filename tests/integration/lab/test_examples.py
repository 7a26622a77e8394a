"""`scripts/lab examples` runs one of Spark's own examples in the function, and a second call finds its result."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.emulator
def test_one_of_sparks_examples_runs_and_is_not_run_again(tmp_path: Path) -> None:
    """Its line holds its end; the second call finds that line and starts nothing."""
    command = [sys.executable, "-P", "-m", "tests.lab", "examples", str(tmp_path), "--select", "sort.py", "--json"]
    outputs = []
    for _ in range(2):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
        assert done.returncode == 0, done.stderr
        outputs.append(json.loads(done.stdout))
    assert [(line["example"], line["state"]) for line in outputs[0]] == [("sort.py", "SUCCESS")]
    assert outputs[1] == outputs[0]
    assert len((tmp_path / "examples.jsonl").read_text().splitlines()) == 1
