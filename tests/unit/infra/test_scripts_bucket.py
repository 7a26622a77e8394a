"""The stack's bucket of job scripts: jobs read it and change nothing, and the sweeper has no right on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def own(stack: Synthesised) -> str:
    (name,) = (name for name in stack.of_type("S3::Bucket") if name.startswith("Scripts"))
    return f"arn:aws:s3:::{name.lower()}"


@pytest.mark.parametrize(("action", "allowed"), [("GetObject", True), ("PutObject", False), ("DeleteObject", False)])
def test_scripts_are_read_and_never_changed(plain: Synthesised, action: str, allowed: bool) -> None:  # noqa: FBT001 - a column of the table above
    """A job cannot replace the code of the next one."""
    assert plain.access("RuntimeJobRole").may(f"s3:{action}", f"{own(plain)}/jobs/a.py") is allowed
    assert not plain.access("RuntimeJobRole").may("s3:ListBucket", own(plain), s3_prefix="jobs/")


def test_the_sweeper_has_no_business_with_scripts(plain: Synthesised) -> None:
    """The sweeper's role has no statement on the scripts bucket."""
    assert not plain.access("SweeperSweepRole").may("s3:GetObject", f"{own(plain)}/jobs/a.py")


def test_a_place_that_is_there_is_used_instead(full: Synthesised) -> None:
    """Only objects below the named prefix can be read, and the stack creates no bucket."""
    access = full.access("RuntimeJobRole")

    assert access.may("s3:GetObject", "arn:aws:s3:::my-scripts/spark/jobs/a.py")
    assert not access.may("s3:GetObject", "arn:aws:s3:::my-scripts/other/a.py")
    assert not [name for name in full.of_type("S3::Bucket") if name.startswith("Scripts")]
