"""The initial content of a local S3: sample jobs, a sample file, empty buckets for tables and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.accommodations import csv_bytes
from soal.local.names import DATA, SCRIPTS, SOURCE_KEY

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

JOBS: Final = Path(__file__).parents[1] / "jobs"


def put_sample(client: S3Client) -> None:
    """Write the sample jobs and the sample file."""
    for job in sorted(JOBS.glob("*.py")):
        client.put_object(Bucket=SCRIPTS, Key=f"jobs/{job.name}", Body=job.read_bytes())
    client.put_object(Bucket=DATA, Key=SOURCE_KEY, Body=csv_bytes())
