"""An error of AWS's Python client as a problem: its cause, and the next step.

The first row of the table that fits decides. A row whose request has not left this machine says so, because then
nothing can have been started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from safewriter.objects.client import ForeignAnswerError
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Failure, Problem

AWS_ERRORS: Final = (aws.BotoCoreError, aws.ClientError, ResponseParserError)
"""All that a call of a client raises; a parser's error is neither of the other two."""

_LOG_IN: Final = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; log in again (aws sso login) if they have expired"
)
_REACH: Final = "check the network, a proxy (HTTPS_PROXY), and the endpoint (--endpoint-url, AWS_ENDPOINT_URL)"


@dataclass(frozen=True, slots=True)
class Step:
    """The next step. `is_unsent`: the request has not left this machine. `is_passing`: the same call may succeed."""

    todo: str
    is_unsent: bool = False
    is_passing: bool = False


_BY_CLASS: Final[tuple[tuple[tuple[type[Exception], ...], Step], ...]] = (
    (
        (aws.NoRegionError,),
        Step(
            "set AWS_DEFAULT_REGION, or `region` in the profile (this client does not read AWS_REGION)", is_unsent=True
        ),
    ),
    (
        (aws.ProfileNotFound,),
        Step("correct AWS_PROFILE; `aws configure list-profiles` shows the profiles of this machine", is_unsent=True),
    ),
    (
        (
            aws.NoCredentialsError,
            aws.PartialCredentialsError,
            aws.CredentialRetrievalError,
            aws.TokenRetrievalError,
            aws.SSOError,
        ),
        Step(_LOG_IN, is_unsent=True),
    ),
    (
        (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ProxyConnectionError),
        Step(_REACH, is_unsent=True, is_passing=True),
    ),
    ((aws.ParamValidationError, aws.InvalidRegionError), Step("correct the name, and try again", is_unsent=True)),
    (
        (ForeignAnswerError, ResponseParserError),
        Step(f"that answer is not from AWS: {_REACH}", is_passing=True),
    ),
    ((aws.HTTPClientError,), Step(_REACH, is_passing=True)),
    ((aws.BotoCoreError,), Step(_REACH)),
)
_CLOCK: Final = ("TimeTooSkewed", "RequestExpired", "RequestInTheFuture")
_SIGNATURE: Final = ("Signature",)
_CREDENTIALS: Final = (
    *("ExpiredToken", "InvalidToken", "InvalidClientTokenId", "UnrecognizedClient", "InvalidAccessKeyId"),
    *("AuthFailure", "MissingAuthenticationToken"),
)
_REGION: Final = ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint")
_PASSING: Final = (
    *("Throttl", "TooManyRequests", "RequestLimitExceeded", "ThroughputExceeded", "SlowDown", "ResourceConflict"),
    *("ServiceException", "ServiceUnavailable", "InternalError", "InternalFailure", "InternalServerError", "Timeout"),
)
_QUOTA: Final = ("ServiceQuotaExceeded",)
_SET_CLOCK: Final = "set the clock of this machine: AWS refuses a request from minutes before or after its own time"
_SET_REGION: Final = Step("set AWS_DEFAULT_REGION, or `region` in the profile, to the region of the bucket")
_TRY_AGAIN: Final = Step("try again", is_passing=True)
_WAIT_FOR_OTHERS: Final = Step(
    "try again once others have ended, or ask AWS for a higher quota (Service Quotas)", is_passing=True
)
_BY_CODE: Final = (
    (_CLOCK, Step(_SET_CLOCK)),
    (_SIGNATURE, Step(f"{_LOG_IN}; if they are right, {_SET_CLOCK}")),
    (_CREDENTIALS, Step(_LOG_IN)),
    (_REGION, _SET_REGION),
    (_PASSING, _TRY_AGAIN),
    (_QUOTA, _WAIT_FOR_OTHERS),
)
"""Parts of codes: services write one before or after a code of others, as in `KMSThrottlingException`."""
# botocore takes the status for the code of an answer without a body.
_BY_STATUS: Final = {
    301: _SET_REGION,
    407: Step(_REACH),
    429: _TRY_AGAIN,
}
_SERVER_ERROR: Final = 500
_NEVER: Final = 501
"""The service does not have what was asked for."""


def step_of(error: BaseException | None, todo: str) -> Step:
    """Return the next step after an error of AWS's client; `todo` is the step after any other refusal."""
    if isinstance(error, aws.ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        named = (step for parts, step in _BY_CODE if any(part in code for part in parts))
        return next(named, None) or _by_status(error) or Step(todo)
    return next((step for classes, step in _BY_CLASS if isinstance(error, classes)), Step(todo))


def _by_status(error: aws.ClientError) -> Step | None:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= _SERVER_ERROR and status != _NEVER:
        return _TRY_AGAIN
    return _BY_STATUS.get(status)


def failed(text: str, error: BaseException | None, todo: str) -> Problem:
    """Return the problem with this text, which an error of `AWS_ERRORS` has caused; `todo` as in `step_of`."""
    step = step_of(error, todo)
    return Problem(text, todo=step.todo, exit_code=EXIT_TRY_AGAIN if step.is_passing else EXIT_FAILED)


def not_started(text: str, error: BaseException, todo: str) -> Problem:
    """Return the problem of a call that starts a job: if no answer has come, the job may run all the same."""
    if isinstance(error, aws.ClientError) or step_of(error, todo).is_unsent:
        return failed(text, error, todo)
    again = "the job may run all the same: see `soal runs list`, then try again with the same clientToken"
    return Failure(text, todo=again)
