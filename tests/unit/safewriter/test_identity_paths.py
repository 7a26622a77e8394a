"""A table's canonical name refuses a path with `.` or `..`, which Hadoop resolves and S3 does not."""

from __future__ import annotations

import pytest

from safewriter.errors import UnsupportedError
from safewriter.identity import canonical_table


@pytest.mark.parametrize("path", ["s3://lake/a/../b", "s3://lake/./a", "s3://lake/a/.", "s3a://lake/.."])
def test_a_path_that_hadoop_would_resolve_is_refused(path: str) -> None:
    """S3 does not: guard and Spark would look at two tables."""
    with pytest.raises(UnsupportedError, match=r"write the path without them"):
        canonical_table(path)


def test_a_name_may_hold_dots() -> None:
    """Only a part that is `.` or `..` as a whole is resolved."""
    assert str(canonical_table("s3://lake/.hidden/a..b")) == "s3://lake/.hidden/a..b"
