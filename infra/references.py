"""Checks of names and references of secrets, and of values that must not be in clear. Secrets never come here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from handler.redaction.secret_names import is_secret
from handler.spark_settings.fixed import why_fixed, why_not_secret
from handler.variables import CATALOG_VARIABLES, REFERENCE, RESERVED, SPARK_SETTING, VARIABLE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_name", "check_open", "check_references", "check_setting", "is_of_catalogs"]

_PASSWORD_IN_URI: Final = re.compile(
    r"//[^/@\s]*:[^/@\s]*@|[?&;,(]\s*[\w.-]*(?:password|passwd|pwd|pass)\s*=", re.IGNORECASE
)


def check_name(name: str) -> None:
    """Raise `ValueError` for a name that no variable of the job can have."""
    if not VARIABLE_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name of a variable: Lambda takes a letter and then letters, digits and _, two at least"
        )
    if RESERVED.fullmatch(name):
        raise ValueError(f"{name} belongs to Lambda, Spark or SoAL; give the job a name of its own")


def check_setting(name: str, *, secret: bool = False) -> None:
    """Raise `ValueError` for a name that is no Spark setting, or one that the handler refuses even to the owner."""
    if not SPARK_SETTING.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a Spark setting; it must begin with 'spark.'")
    if (why := (why_not_secret if secret else why_fixed)(name)) is not None:
        raise ValueError(f"{name} may not be set: {why}")


def check_open(settings: Mapping[str, str]) -> None:
    """Raise `ValueError` if variables or Spark settings hold a secret in clear, by the names that logs mask, too."""
    for name, value in settings.items():
        if is_secret(name, value) or _PASSWORD_IN_URI.search(value):
            raise ValueError(
                f"{name} carries a secret, which the template and the function would show; put it into"
                f' Secrets Manager and write secrets={{"{name}": "ARN of the secret"}} (or ARN#key for one of its keys)'
            )


def check_references(secrets: Mapping[str, str]) -> None:
    """Raise `ValueError` for a name that nothing can have, or a reference that a policy could not name exactly."""
    for name, reference in secrets.items():
        if SPARK_SETTING.fullmatch(name):
            check_setting(name, secret=True)
        else:
            check_name(name)
        if not REFERENCE.fullmatch(reference):
            raise ValueError(
                f"what is given for {name} is not the whole ARN of a secret with the six characters at its end, without"
                " which a policy would allow other secrets too; aws secretsmanager describe-secret --secret-id NAME"
                " --query ARN says it (and #key behind it takes one key of a secret that is a JSON object)"
            )


def is_of_catalogs(name: str) -> bool:
    """Tell whether a job reaches catalogs by a variable."""
    return name.upper().startswith(CATALOG_VARIABLES)
