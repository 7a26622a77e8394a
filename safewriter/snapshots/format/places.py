"""Canonical names of places on S3: builds, readers, recovery and clean-up compare them as texts."""

from __future__ import annotations

import re
from typing import Final

from safewriter.errors import UnsupportedError
from safewriter.identity import canonical_table
from safewriter.objects.location import Location
from safewriter.snapshots.checks import check_type
from safewriter.snapshots.errors import ConfigValidationError

__all__ = ["canonical_url", "checked_segment", "is_segment", "prefix_of"]

_SEGMENT: Final = re.compile(r"(?!\.+$)[A-Za-z0-9._=-]{1,255}")


def is_segment(text: object) -> bool:
    """Return whether a text may be one segment of a path, as the name of a run or of the folder of all shards."""
    return isinstance(text, str) and _SEGMENT.fullmatch(text) is not None


def checked_segment(name: str, value: str) -> str:
    """Return what an option says if it is one segment of a path; `ConfigValidationError` names the option if not."""
    if not is_segment(value):
        raise ConfigValidationError(
            f"{name} {value!r} is not one path segment of at most 255 letters, digits, '.', '_', '=' and '-'"
        )
    return value


def prefix_of(s3_prefix: str) -> Location:
    """Return the canonical prefix of snapshots, as the write protocol names tables: s3, and no doubled slashes.

    Raises `ConfigValidationError` for an invalid URL or a whole bucket.
    """
    check_type("s3_prefix", s3_prefix, str)
    try:
        location = Location.parse(s3_prefix)
        if location.key.strip("/"):
            return canonical_table(s3_prefix)
    except (ValueError, UnsupportedError) as error:
        raise ConfigValidationError(f"s3_prefix: {error}") from None
    raise ConfigValidationError(f"s3_prefix {s3_prefix!r} names a whole bucket; give s3://bucket/prefix")


def canonical_url(url: str) -> str:
    """Return the URL of an object or a folder with the scheme s3 and no slash at its end. Raises `ValueError`.

    Doubled slashes inside stay, since they are part of an object's key.
    """
    return str(Location.parse(url.rstrip("/")))
