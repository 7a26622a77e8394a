"""Name the cause and the next step where the message of a job's error shows neither."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from handler.spark.missing_dependencies import Raised

__all__ = ["advice_for"]

_CAUSES: Final = (
    (
        re.compile(r"org\.apache\.hadoop\.fs\.s3a\.UnknownStoreException: `?s3a?://([\w.-]+)"),
        "the bucket {0} does not exist: create it, or correct its name in the script or its arguments",
    ),
    (
        re.compile(r"java\.nio\.file\.AccessDeniedException: (s3a?://[^\s:]+)"),
        (
            "S3 has denied a request for {0}: name it in the stack's context key data or read_only_data, and the key"
            " that encrypts it, if any, in data_kms_key_arns"
        ),
    ),
    (
        re.compile(r"(?:[\w.$]+: )?\[REQUIRES_SINGLE_PART_NAMESPACE\][^`]*`([\w-]+)`"),
        "there is no catalog {0}: correct its name, or have the owner set spark.sql.catalog.{0} in SOAL_CONF",
    ),
)
"""How lines of Hadoop's and Spark's exceptions begin, each with its advice."""


def advice_for(errors: Iterable[Raised]) -> str | None:
    """Return the advice for the exceptions that ended a script; None if there is none. The script's own exceptions may
    hold any text, so only those of Spark count.
    """
    for line in (line for error in errors if error.of_spark for line in error.text.splitlines()):
        for pattern, advice in _CAUSES:
            if match := pattern.match(line):
                return advice.format(match[1])
    return None
