"""Read the stack's settings from CDK context (`-c key=value`, or cdk.json), or raise the first error in it."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from infra.config import Config
from infra.contradictions import ConfigError, contradictions

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_SUPPORTED: Final = {
    "lake_formation": "is not supported: Spark, the guard and the sweeper read and write S3 with their own roles, not"
    " with credentials of Lake Formation. Leave the data's location to IAM and name it in data; where Lake Formation"
    " guards the catalog, grant both roles their databases there",
}


def read_context(context: Mapping[str, object]) -> Config:
    """Read CDK's context; keys with a colon, a slash or an @ are the CDK's own.

    Raises `ConfigError` for the first unknown key or invalid value, or the first two contradictory settings.
    """
    values = {key: value for key, value in context.items() if not re.search(r"[:/@]", key)}
    for key in values.keys() - Config.model_fields.keys():
        if key in _NOT_SUPPORTED:
            raise ConfigError(key, values[key], _NOT_SUPPORTED[key])
        near = difflib.get_close_matches(key, Config.model_fields, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(Config.model_fields)}"
        raise ConfigError(key, values[key], f"there is no such key; {hint}")
    try:
        config = Config.model_validate({key: value for key, value in values.items() if value not in ("", None)})
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        key = str(detail["loc"][0])
        raise ConfigError(key, _printable(key, values.get(key)), _remedy(detail)) from None
    for contradiction in contradictions(config):
        raise contradiction
    return config


def _printable(key: str, value: object) -> object:
    """Hide values of variables and settings, which may be the secret that the error is about."""
    if key not in ("environment", "conf", "secrets"):
        return value
    return f"{{{', '.join(map(str, value))}}}" if isinstance(value, dict) else "…"


def _remedy(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    if error["type"] == "value_error":  # raised by a validator of SoAL, with its own message
        return str(error["ctx"]["error"])
    return str(error["msg"]).replace("Input should be", "must be").replace("String should match pattern", "must match")
