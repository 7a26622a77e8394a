"""An `s3://` URI becomes bucket and key and back unchanged, joins names, and refuses any other text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.objects import Location


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("s3://bucket", Location("bucket")),
        ("s3://bucket/", Location("bucket")),
        ("s3a://bucket/key", Location("bucket", "key")),
        ("s3n://bucket.name-1/a/b c=d%20/", Location("bucket.name-1", "a/b c=d%20/")),
        ("s3://bucket/line\nbreak", Location("bucket", "line\nbreak")),
    ],
)
def test_a_uri_is_bucket_and_key(uri: str, location: Location) -> None:
    """The key is taken as it is, without decoding."""
    assert Location.parse(uri) == location


@pytest.mark.parametrize(
    "uri",
    ["", "bucket/key", "http://bucket/key", "s3:/bucket", "s3://", "s3://ab", "s3://Up/x", "s3://a_b_c/x", "S3://b/"],
)
def test_any_other_text_is_refused(uri: str) -> None:
    """The error repeats the text and says what a path looks like."""
    with pytest.raises(ValueError, match=r"is not an S3 path|no valid bucket name"):
        Location.parse(uri)


@given(st.from_regex(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", fullmatch=True), st.text())
def test_its_text_is_parsed_to_itself(bucket: str, key: str) -> None:
    """Writing and parsing are inverse, whatever the key."""
    location = Location(bucket, key)

    assert Location.parse(str(location)) == location


def test_a_name_is_appended_with_one_slash() -> None:
    """Below a bucket, below a prefix, and below one that ends in a slash."""
    assert str(Location("bucket") / "a") == "s3://bucket/a"
    assert str(Location("bucket", "p") / "a") == "s3://bucket/p/a"
    assert str(Location("bucket", "p/") / "a") == "s3://bucket/p/a"


@pytest.mark.parametrize(
    ("uri", "folder", "below"),
    [
        ("s3://bucket/a/b", "s3://bucket/a", True),
        ("s3://bucket/a/b", "s3://bucket/a/", True),
        ("s3://bucket/a/b/c", "s3://bucket/a", True),
        ("s3://bucket/a", "s3://bucket", True),
        ("s3://bucket/a", "s3://bucket/a", False),
        ("s3://bucket/ab", "s3://bucket/a", False),
        ("s3://other/a/b", "s3://bucket/a", False),
        ("s3://other/a", "s3://bucket", False),
    ],
)
def test_below_a_folder_is_what_follows_its_slash(uri: str, folder: str, *, below: bool) -> None:
    """Neither the folder itself, nor a key that only begins like it, nor the same key of another bucket."""
    assert Location.parse(uri).is_below(Location.parse(folder)) is below


@pytest.mark.parametrize(("uri", "name"), [("s3://bucket/a/b", "b"), ("s3://bucket/a", "a"), ("s3://bucket", "")])
def test_a_location_knows_its_name(uri: str, name: str) -> None:
    """The last part of the key, which a bucket has not."""
    assert Location.parse(uri).name == name


def test_half_of_a_pair_of_surrogates_is_no_key() -> None:
    """JSON can hold it, and no request can."""
    with pytest.raises(ValueError, match=r"'s3://lake/\\ud800' is no text in UTF-8"):
        Location.parse("s3://lake/\ud800")
