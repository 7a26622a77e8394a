"""The first content of a local S3: sample jobs, a sample file, empty buckets for tables and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scripts.accommodations import csv_bytes
from scripts.soal.local.home import JOBS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["BUCKETS", "CHECKPOINTS", "DATA", "LAKE", "SCRIPTS", "SOURCE_KEY", "put_sample"]

SCRIPTS: Final = "soal-scripts"
DATA: Final = "soal-data"
LAKE: Final = "soal-lake"
CHECKPOINTS: Final = "soal-checkpoints"
BUCKETS: Final = (SCRIPTS, DATA, LAKE, CHECKPOINTS)
SOURCE_KEY: Final = "accommodations.csv"


def put_sample(client: S3Client, source: bytes | None = None) -> None:
    """Write the sample jobs and the sample file: `source`, or generated rows."""
    for job in sorted(JOBS.glob("*.py")):
        client.put_object(Bucket=SCRIPTS, Key=f"jobs/{job.name}", Body=job.read_bytes())
    client.put_object(Bucket=DATA, Key=SOURCE_KEY, Body=csv_bytes() if source is None else source)
