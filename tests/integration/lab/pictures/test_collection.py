"""`python -m tests.lab.pictures` runs real jobs, draws both pictures, keeps their facts, and leaves nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT
from tests.lab.pictures.facts import MOMENTS, read_facts
from tests.lab.pictures.steps import steps_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.emulator
@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.timeout(1800)
def test_the_pictures_are_drawn_from_runs_that_lose_and_double_without_the_guard_and_never_with_it(
    tmp_path: Path,
) -> None:
    """One command runs all jobs, writes both pictures and their facts, and leaves nothing else."""
    out, place = tmp_path / "out", tmp_path / "tmp"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.lab.pictures", "--out", str(out)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(place)},
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {"kill.svg", "runs.json", "write.svg"}
    assert list(place.iterdir()) == []
    facts = read_facts(out / "runs.json")
    batch = facts.batch_rows
    written, landed = (facts.kill(moment, is_guarded=False) for moment in ("written", "landed"))
    assert (written.killed.rows, written.retried.orphans) == (batch, written.killed.orphans)
    assert written.killed.orphans > 0
    assert (landed.killed.rows, landed.retried.rows) == (2 * batch, 3 * batch)
    retried = [facts.kill(moment, is_guarded=True).retried for moment in MOMENTS]
    assert [(state.rows, state.orphans, state.status) for state in retried] == [(2 * batch, 0, "committed")] * 4
    assert facts.write.rows == 2 * batch
    assert steps_of(facts.write).commit.condition == "If-None-Match: *"
