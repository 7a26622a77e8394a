"""`s3://bucket/key` as a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Location"]

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_URI = re.compile(r"(s3|s3a|s3n)://([^/]*)/?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Location:
    """A bucket and a key (or prefix, possibly empty) in it."""

    bucket: str
    key: str = ""

    @classmethod
    def parse(cls, uri: str) -> Location:
        """Parse an `s3://`, `s3a://` or `s3n://` URI; `ValueError` says what is wrong with any other text."""
        match = _URI.fullmatch(uri)
        if match is None:
            raise ValueError(f"{uri!r} is not an S3 path; write s3://bucket/key")
        _, bucket, key = match.groups()
        if not _BUCKET.fullmatch(bucket):
            raise ValueError(f"{uri!r} has no valid bucket name (3 to 63 of a-z, 0-9, '.', '-')")
        if not _is_utf8(key):
            raise ValueError(f"{uri!r} is no text in UTF-8, and no object has such a key")
        return cls(bucket, key)

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    def __truediv__(self, name: str) -> Location:
        """Return the location of `name` below this one."""
        return Location(self.bucket, f"{self.key.rstrip('/')}/{name}" if self.key else name)

    def is_below(self, folder: Location) -> bool:
        """Return whether this is a key below another location, by whole path segments."""
        return self.bucket == folder.bucket and self.key.startswith(f"{folder.key.rstrip('/')}/" if folder.key else "")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}" if self.key else f"s3://{self.bucket}"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can hold
        return False
    return True
