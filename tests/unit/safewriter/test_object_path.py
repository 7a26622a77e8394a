"""The path of one object stands for no other, whatever its key."""

from __future__ import annotations

import pytest

from safewriter import UsageError, object_path


def test_signs_of_patterns_are_taken_literally() -> None:
    """A backslash precedes each, and nothing else changes."""
    path = object_path("lake", "in/{a,b}/[1]*?\\ c%20d+é:.csv")

    assert path == r"s3a://lake/in/\{a,b\}/\[1\]\*\?\\ c%20d+é:.csv"


@pytest.mark.parametrize(
    "key", ["", "in/../pay/a.csv", "./a.csv", "in//a.csv", "/a.csv", "in/", "in/_a.csv", "in/.a.csv", "in/a._COPYING_"]
)
def test_a_key_that_is_no_path_is_refused(key: str) -> None:
    """For Spark it would be the path of another object, of a folder, or of a file to pass over."""
    with pytest.raises(UsageError, match="another object, or none"):
        object_path("lake", key)
