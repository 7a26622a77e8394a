"""Read the secrets that the function's settings name from Secrets Manager when a run or a sweep begins.

Their values become variables of the job, or Spark settings in its properties file. Logs, results and documents never
hold them, since redaction knows each value.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from botocore.exceptions import BotoCoreError, ClientError

from handler.input_errors import InputError
from handler.spark_settings.checked import check_text
from handler.spark_settings.fixed import why_not_secret
from handler.variables import CATALOG_VARIABLES, REFERENCE, RESERVED, SPARK_SETTING, VARIABLE_NAME
from safewriter.errors import TryAgainError
from safewriter.objects.client import client_of
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SecretReference", "SecretUnavailableError", "Secrets", "parse_references", "read_secrets"]

_FIELD: Final = "SOAL_SECRETS"
_AGE_MAX_S: Final = 300
"""A warm function reads a rotated secret after this time at the latest; the old one is valid longer."""
# https://docs.aws.amazon.com/secretsmanager/latest/apireference/CommonErrors.html
_TRANSIENT: Final = frozenset(
    {"InternalServiceError", "InternalFailure", "ServiceUnavailable", "ThrottlingException", "Throttling"}
)
_SERVER_ERROR: Final = 500


class SecretUnavailableError(TryAgainError):
    """Secrets Manager did not answer; the job was not started. The same invocation may be tried later."""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A secret or, with `key`, one value of a secret that is a JSON object."""

    arn: str
    region: str
    key: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `ARN` or `ARN#key`; `ValueError` if it is neither."""
        match = REFERENCE.fullmatch(text)
        if match is None:
            raise ValueError("is not the whole ARN of a secret, with the six characters at its end, or ARN#json-key")
        return cls(match["arn"], match["region"], match["key"])

    def __str__(self) -> str:
        return self.arn if self.key is None else f"{self.arn}#{self.key}"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secret values by the job's names for them; `repr` does not show them."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """The values that become variables of the job."""
        return {name: value for name, value in self.values.items() if not SPARK_SETTING.fullmatch(name)}

    @property
    def spark_settings(self) -> dict[str, str]:
        """The values that become Spark settings of the job."""
        return {name: value for name, value in self.values.items() if SPARK_SETTING.fullmatch(name)}

    @property
    def of_catalogs(self) -> dict[str, str]:
        """The variables with which pyiceberg and PostgreSQL's client reach catalogs; settling needs them, too."""
        return {name: value for name, value in self.variables.items() if name.upper().startswith(CATALOG_VARIABLES)}


def parse_references(text: object) -> dict[str, SecretReference]:
    """Parse the variable SOAL_SECRETS; `ValueError` describes the problem without repeating a value."""
    try:
        document = parsed(str(text))
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ValueError("must be a JSON object of names and ARNs of secrets")  # noqa: TRY004 - for pydantic
    references: dict[str, SecretReference] = {}
    for name, reference in document.items():
        if (why := why_not_secret(name)) is not None:
            raise ValueError(f"{name} may not be set: {why}")
        if not SPARK_SETTING.fullmatch(name) and (not VARIABLE_NAME.fullmatch(name) or RESERVED.fullmatch(name)):
            raise ValueError(f"{name!r} is neither a Spark setting nor a variable that a job may have")
        try:
            references[name] = SecretReference.parse(str(reference))
        except ValueError as error:
            raise ValueError(f"what is given for {name} {error}") from None
    return references


def read_secrets(
    references: Mapping[str, SecretReference], fetch: Callable[[SecretReference], str] | None = None
) -> Secrets:
    """Read the secrets; `fetch` returns the whole text of one.

    Raises `InputError` if a secret cannot be read until the owner changes something, `SecretUnavailableError` if a
    later attempt may read it.
    """
    fetch = _fetch if fetch is None else fetch
    return Secrets({name: _value(name, reference, fetch(reference)) for name, reference in references.items()})


def _value(name: str, reference: SecretReference, text: str) -> str:
    value = text if reference.key is None else _of_key(reference, text)
    if not value or "\0" in value:
        raise InputError(_FIELD, f"the secret for {name} ({reference}) is empty, or holds a NUL")
    if SPARK_SETTING.fullmatch(name) and check_text(value) is not None:  # its message would repeat part of the value
        raise InputError(
            _FIELD,
            f"the secret for {name} ({reference}) is no value for a setting: it holds a control character (perhaps at"
            " its end) or ${, begins with env:, names a place outside /tmp, or is too long",
        )
    return value


def _of_key(reference: SecretReference, text: str) -> str:
    try:
        document = parsed(text)
    except ValueError:
        document = None
    value = document.get(reference.key) if isinstance(document, dict) else None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(
            _FIELD,
            f"the secret {reference.arn} is no JSON object with a text or number under {reference.key!r}; correct the"
            " key behind the #, or leave it out for the whole secret",
        )
    return str(value)


def _fetch(reference: SecretReference) -> str:
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError

    provider = _provider(reference.region, os.environ.get("AWS_SESSION_TOKEN"))
    try:
        secret = provider.get(reference.arn, max_age=_AGE_MAX_S)
    except GetParameterError as error:
        cause = error.__context__
        if _is_transient(cause):
            raise SecretUnavailableError(f"the secret {reference.arn} could not be read: {cause}") from None
        raise InputError(
            _FIELD,
            f"the secret {reference.arn} could not be read: {cause}; allow secretsmanager:GetSecretValue on it to the"
            " function's role (context secrets), kms:Decrypt on its key if it has one of its own (context"
            " secret_kms_key_arns), and see that the ARN is complete",
        ) from None
    if not isinstance(secret, str):
        raise InputError(_FIELD, f"the secret {reference.arn} is binary; store it as text")
    return secret


def _is_transient(error: BaseException | None) -> bool:
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= _SERVER_ERROR or error.response.get("Error", {}).get("Code") in _TRANSIENT
    return isinstance(error, BotoCoreError)


@functools.lru_cache(maxsize=4)
def _provider(region: str, _session: str | None) -> Any:  # noqa: ANN401 - imported only where there are secrets
    """Return Powertools' provider, which caches secrets; a new one once the credentials change."""
    from aws_lambda_powertools.utilities.parameters import SecretsProvider
    from botocore.config import Config

    config = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 3, "mode": "standard"})
    client = client_of("secretsmanager", config, region=region)
    return SecretsProvider(boto3_client=client)
