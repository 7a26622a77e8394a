"""Sample jobs in the wheel's fixtures: killed behind their commit and run again, with the guard and without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.accommodations import csv_bytes
from scripts.provision.place import ROOT
from scripts.tables.delta import view
from soal.testing.session import session_settings
from tests.support.spark_session import stock_class_path

if TYPE_CHECKING:
    from soal.testing.job import Jobs
    from soal.testing.s3 import EmbeddedS3

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(600)]

ROWS = 100


@pytest.fixture(scope="session")
def soal_settings(soal_s3: EmbeddedS3) -> dict[str, str]:
    """With the jars of the clone, whatever folder pytest was started in."""
    return session_settings(soal_s3.endpoint, [Path(jar) for jar in stock_class_path().split(":")])


@pytest.mark.parametrize(("job", "times"), [("accommodations_delta", 1), ("accommodations_delta_unguarded", 2)])
def test_a_file_whose_job_is_killed_behind_its_commit_is_appended(
    run_job: Jobs, soal_s3: EmbeddedS3, soal_table: str, tmp_path: Path, job: str, times: int
) -> None:
    """Once by the guarded job and its retry, twice by the other."""
    source = tmp_path / "accommodations.csv"
    source.write_bytes(csv_bytes(ROWS))
    script = ROOT / "scripts" / "jobs" / f"{job}.py"
    arguments = ("--source", source.as_uri(), "--table", soal_table)

    killed = run_job(script, *arguments, run_key=job, kill_at="after commit")
    retried = run_job(script, *arguments, run_key=job)

    assert (killed.exit_code, retried.exit_code) == (-9, 0), retried.output
    assert [(write.status, write.rows) for write in retried.writes] == [("committed", ROWS)] * (times == 1)
    table = view(soal_s3.observer(), "lake", soal_table.removeprefix("s3a://lake/"), soal_s3.environment())
    assert table.rows == times * ROWS
