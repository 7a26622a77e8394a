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
        re.compile(r"UnknownStoreException: `?s3a?://([\w.-]+)"),
        "the bucket {0} does not exist: create it, or correct its name in the script or its arguments",
    ),
    (
        re.compile(r"AccessDeniedException: (s3a?://[^\s:]+)"),
        (
            "S3 has denied a request for {0}: name it in the stack's context key data or read_only_data, and the key"
            " that encrypts it, if any, in data_kms_key_arns"
        ),
    ),
    (
        re.compile(r"\[REQUIRES_SINGLE_PART_NAMESPACE\][^`]*`([\w-]+)`"),
        "there is no catalog {0}: correct its name, or have the owner set spark.sql.catalog.{0} in SOAL_CONF",
    ),
)
"""Texts of Hadoop and Spark, each with its advice."""


def advice_for(errors: Iterable[Raised]) -> str | None:
    """Return the advice for the exceptions that ended a script; None if there is none. The script's own exceptions may
    hold any text, so only those of Spark count.
    """
    for error in errors:
        for pattern, advice in _CAUSES:
            if error.of_spark and (match := pattern.search(error.text)):
                return advice.format(match[1])
    return None
