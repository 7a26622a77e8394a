"""Each spelling of a snapshot's prefix or URL on S3 becomes one canonical name, and other texts are refused."""

from __future__ import annotations

import pytest

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.format.places import canonical_url, prefix_of


@pytest.mark.parametrize("text", ["s3://lake/a/kv", "s3a://lake/a/kv", "s3n://lake/a/kv/", "s3://lake//a//kv//"])
def test_a_prefix_has_one_name(text: str) -> None:
    """It is the write protocol's name; with another one, a build would remove its own shards."""
    assert str(prefix_of(text)) == "s3://lake/a/kv"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("s3://lake", "whole bucket"),
        ("s3://lake//", "whole bucket"),
        ("gs://lake/kv", "no"),
        ("s3://lake/../kv", "'..'"),
    ],
)
def test_what_is_no_prefix_is_refused(text: str, problem: str) -> None:
    """The error names it."""
    with pytest.raises(ConfigValidationError, match=f"s3_prefix.*{problem}"):
        prefix_of(text)


def test_a_url_has_one_name() -> None:
    """Slashes inside are part of the key."""
    assert canonical_url("s3a://lake/a//b/") == canonical_url("s3://lake/a//b") == "s3://lake/a//b"
