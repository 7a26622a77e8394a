"""The stack's settings name buckets, prefixes and images; those that a policy would read otherwise are refused."""

from __future__ import annotations

import pytest

from infra.places import BucketPrefix, ImageUri

REGISTRY = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("lake", BucketPrefix("lake")),
        ("lake/", BucketPrefix("lake")),
        ("s3://lake/a/b/", BucketPrefix("lake", "a/b")),
        ("s3a://lake/day=1", BucketPrefix("lake", "day=1")),
    ],
)
def test_a_place_is_a_bucket_and_perhaps_a_prefix(text: str, place: BucketPrefix) -> None:
    """Scheme and outer slashes have no meaning; the printed form can be parsed again."""
    assert BucketPrefix.parse(text) == place
    assert BucketPrefix.parse(str(place)) == place


@pytest.mark.parametrize("text", ["", "a", "UPPER", "lake/*", "lake/a?", "lake/${aws:username}", "http://lake/x"])
def test_what_a_policy_would_read_otherwise_is_refused(text: str) -> None:
    """A wildcard or a policy variable in a prefix would open more places than the one named."""
    with pytest.raises(ValueError, match=r"bucket|wildcard"):
        BucketPrefix.parse(text)


@pytest.mark.parametrize(
    ("text", "reference", "pinned"),
    [(f"{REGISTRY}/a/soal:v1", "v1", False), (f"{REGISTRY}/soal@sha256:{'0' * 64}", f"sha256:{'0' * 64}", True)],
)
def test_an_image_has_a_tag_or_a_digest(text: str, reference: str, pinned: bool) -> None:  # noqa: FBT001 - a column of the table above
    """Only a digest identifies one image for ever."""
    image = ImageUri.parse(text)

    assert (image.account, image.region, image.reference) == ("123456789012", "eu-west-1", reference)
    assert image.is_pinned is pinned


@pytest.mark.parametrize(
    "text", ["soal:v1", "public.ecr.aws/x/soal:v1", f"{REGISTRY}/soal", f"{REGISTRY}/soal@sha256:0"]
)
def test_what_lambda_would_not_take_is_refused(text: str) -> None:
    """Lambda accepts only images of a private ECR repository, by tag or digest."""
    with pytest.raises(ValueError, match="private ECR"):
        ImageUri.parse(text)
