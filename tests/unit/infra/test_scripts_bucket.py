"""The stack's bucket of job scripts: jobs read it and change nothing, and the sweeper has no right on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def test_a_place_that_is_there_is_used_instead(full: Synthesised) -> None:
    """Only objects below the named prefix can be read, and the stack creates no bucket."""
    access = full.access("RuntimeJobRole")

    assert access.may("s3:GetObject", "arn:aws:s3:::my-scripts/spark/jobs/a.py")
    assert not access.may("s3:GetObject", "arn:aws:s3:::my-scripts/other/a.py")
    assert not [name for name in full.of_type("S3::Bucket") if name.startswith("Scripts")]
