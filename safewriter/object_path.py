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

    It is for `spark.read` and `spark.readStream`, not for a `SparkContext`'s readers, which split paths at commas.
    Spark takes a path as a pattern, leaves empty elements, `.` and `..` out of it, and passes over files whose names
    begin with `_` or `.`, or end with `._COPYING_`. Whoever names an object could so have a script read others, or
    nothing. Raises `UsageError` for a key that has no path of its own. In the function Spark itself refuses to read a
    path that is also a folder of other objects.
    """
    elements = key.split("/")
    name = elements[-1]
    if not {"", ".", ".."}.isdisjoint(elements) or name.startswith(("_", ".")) or name.endswith("._COPYING_"):
        raise UsageError(
            f"Spark would take another object, or none, for the key {key!r} in {bucket}: an element of the key is"
            " empty, '.' or '..', or its name begins with '_' or '.', or ends with '._COPYING_'. Copy the object to"
            " another key"
        )
    return f"s3a://{bucket}/" + _GLOB.sub(r"\\\g<0>", key)
