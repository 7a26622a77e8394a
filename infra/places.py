"""References to things outside of the stack: a bucket or a part of it, an image in a registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

__all__ = ["BucketPrefix", "ImageUri"]

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
# Addresses, two dots in a row, and names whose ends S3 keeps for other kinds of places are none of a bucket's.
_BUCKET: Final = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-)(?![0-9]+(?:\.[0-9]+){3}$)(?!.*\.\.)(?!.*(?:-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)"
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
)
# Without wildcards of a policy, and characters that do not belong into a key that people write by hand.
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.'()=@/ -]*")
_IMAGE: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/(?P<name>[a-z0-9][a-z0-9._/-]*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})|@(?P<digest>sha256:[0-9a-f]{64}))"
)


@dataclass(frozen=True, slots=True)
class BucketPrefix:
    """A bucket, or all keys of it below `prefix` (without slashes at its ends; empty: the whole bucket)."""

    bucket: str
    prefix: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `bucket` or `bucket/prefix`, with or without `s3://` before it; `ValueError` says what is wrong."""
        bucket, _, prefix = re.sub(r"^s3[an]?://", "", text).partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise ValueError(f"{bucket!r} is no name of a bucket; write bucket or bucket/prefix")
        prefix = prefix.strip("/")
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(f"{prefix!r} holds a character that a policy reads as a wildcard, or that is not ASCII")
        return cls(bucket, prefix)

    def key(self, pattern: str) -> str:
        """Return a key, or a pattern of keys, below the prefix."""
        return f"{self.prefix}/{pattern}" if self.prefix else pattern

    def is_below(self, other: BucketPrefix) -> bool:
        """Tell whether each key here is one of `other`'s, too."""
        mine, theirs = (f"{place.prefix}/" if place.prefix else "" for place in (self, other))
        return self.bucket == other.bucket and mine.startswith(theirs)

    def __str__(self) -> str:
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket


@dataclass(frozen=True, slots=True)
class ImageUri:
    """An image in a private ECR repository, the only kind that Lambda takes; `reference` is its tag or its digest."""

    account: str
    region: str
    repository: str
    reference: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG` or `…/NAME@sha256:…`; `ValueError` if it is neither."""
        match = _IMAGE.fullmatch(text)
        if match is None:
            raise ValueError(
                "is not an image of a private ECR repository with its tag or digest"
                " (ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG or …/NAME@sha256:…)"
            )
        return cls(match["account"], match["region"], match["name"], match["tag"] or match["digest"])

    @property
    def is_pinned(self) -> bool:
        """Tell whether it names one image for ever; a tag can be moved, and Lambda would not notice."""
        return self.reference.startswith("sha256:")
