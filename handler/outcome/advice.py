"""Name the cause and the next step where the message of a job's error shows neither."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handler.spark.missing_dependencies import Raised

__all__ = ["Advice", "advice_for"]


@dataclass(frozen=True, slots=True)
class Advice:
    """The cause of an error and the next step. `says_all`: the message of Spark's exception adds nothing to it."""

    text: str
    says_all: bool = True


_CAUSES: Final = (
    (
        re.compile(r"org\.apache\.hadoop\.fs\.s3a\.UnknownStoreException: `?s3a?://([\w.-]+)"),
        Advice("the bucket {0} does not exist: create it, or correct its name in the script or its arguments"),
    ),
    (
        re.compile(r"java\.nio\.file\.AccessDeniedException: (s3a?://[^\s:]+)"),
        Advice(
            "S3 has denied a request for {0}: if the script or its arguments name that bucket (a table's log may name"
            " any), name it in the stack's context key data or read_only_data, and the key that encrypts it, if any, in"
            " data_kms_key_arns",
            says_all=False,  # the message names the caller and the right
        ),
    ),
    (
        re.compile(r"(?:[\w.$]+: )?\[REQUIRES_SINGLE_PART_NAMESPACE\][^`]*`([\w-]+)`"),
        Advice("there is no catalog {0}: correct its name, or have the owner set spark.sql.catalog.{0} in SOAL_CONF"),
    ),
)
"""How lines of Hadoop's and Spark's exceptions begin, each with its advice."""


def advice_for(errors: Sequence[Raised]) -> Advice | None:
    """Return the advice for the exceptions that ended a script, the outermost first; None if there is none.

    The script's own exceptions may hold any text: only those of Spark get an advice, and what the script itself has
    said about one of them is not in the advice.
    """
    for line in (line for error in errors if error.of_spark for line in error.text.splitlines()):
        for pattern, advice in _CAUSES:
            if match := pattern.match(line):
                text, says_all = advice.text.format(match[1]), advice.says_all and errors[0].of_spark
                return replace(advice, text=text, says_all=says_all)
    return None
