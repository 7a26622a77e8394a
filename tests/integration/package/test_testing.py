"""The page's test of a job, as a user of the built wheel runs it: in a folder of its own, with pytest alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT
from tests.support.spark_session import stock_class_path

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WRONG = """
from pathlib import Path
import pytest


def test_a_job_is_killed_before_its_commit_and_leaves_no_rows(run_job, soal_s3, soal_table, tmp_path):
    (tmp_path / "rooms.csv").write_text("id,city\\n1,Rome\\n")
    killed = run_job("my_job.py", (tmp_path / "rooms.csv").as_uri(), soal_table, kill_at="before commit")
    assert [write.status for write in killed.writes] == ["in_progress"]
    table = soal_table.removeprefix("s3a://lake/")
    assert [key for key in soal_s3.keys("lake", table) if key.endswith(".json")] == []


def test_a_kill_that_never_comes_fails_the_test(run_job, tmp_path):
    script = tmp_path / "nothing.py"
    script.write_text("print('no write')")
    with pytest.raises(AssertionError, match="before the kill at 1:\\nno write"):
        run_job(script, kill_at=1)
"""


def example(page: str, *, containing: str) -> str:
    """Return the Python block of a page that contains a text."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = (block for block in blocks if containing in block)
    return str(found)


def test_the_page_s_test_of_the_readme_s_script_passes(site: Path, tmp_path: Path) -> None:
    """The plugin comes with the package; a job that is killed at its commit and run again writes its rows once."""
    (tmp_path / "my_job.py").write_text(example("README.md", containing="SafeWriter"))
    (tmp_path / "test_my_job.py").write_text(example("docs/guides/testing.md", containing="run_job"))
    (tmp_path / "test_wrong.py").write_text(WRONG)
    jars = " ".join(stock_class_path().split(":"))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nsoal_jars = {jars}\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SW_", "SOAL_"))}
    run = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(
        run,
        cwd=tmp_path,
        env={**clean, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "3 passed" in done.stdout, done.stdout + done.stderr
