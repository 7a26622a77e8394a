"""The path of one object, for scripts that get its key from an event."""

from __future__ import annotations

import re
from typing import Final

from safewriter.errors import UsageError

__all__ = ["object_path"]

_GLOB: Final = re.compile(r"[\\{}*?\[\]]")
"""The signs of Hadoop's patterns, in which a backslash takes a sign literally."""


def object_path(bucket: str, key: str) -> str:
    r"""Return the path by which Spark reads the object with this key, and no other.

    >>> print(object_path("lake", "in/prices[1].csv"))
    s3a://lake/in/prices\[1\].csv

    Spark takes a path as a pattern, and leaves empty elements, `.` and `..` out of it. Whoever names an object could so
    have a script read others. Raises `UsageError` for a key that has no path of its own.
    """
    if not {"", ".", ".."}.isdisjoint(key.split("/")):
        raise UsageError(
            f"the object with the key {key!r} in {bucket} has no path, since an element of the key is empty, '.' or"
            " '..': Spark would take another object for it; copy it to another key"
        )
    return f"s3a://{bucket}/" + _GLOB.sub(r"\\\g<0>", key)
