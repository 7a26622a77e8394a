"""An error of AWS's client says its cause and the next step, and whether anything can have been started."""

from __future__ import annotations

import pytest
from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from safewriter.objects.client import ForeignAnswerError
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN
from soal.remote.failure import failed, step_of


def refused(code: str, status: int = 400) -> aws.ClientError:
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return aws.ClientError(answer, "Invoke")  # type: ignore[arg-type] # a part of what botocore answers


@pytest.mark.parametrize(
    ("error", "words", "is_unsent"),
    [
        (aws.NoRegionError(), "AWS_DEFAULT_REGION", True),
        (aws.ProfileNotFound(profile="x"), "AWS_PROFILE", True),
        (aws.NoCredentialsError(), "AWS_ACCESS_KEY_ID", True),
        (aws.UnauthorizedSSOTokenError(), "aws sso login", True),
        (aws.EndpointConnectionError(endpoint_url="http://x"), "HTTPS_PROXY", True),
        (aws.ReadTimeoutError(endpoint_url="http://x"), "HTTPS_PROXY", False),
        (aws.ConnectionClosedError(endpoint_url="http://x"), "HTTPS_PROXY", False),
        (ResponseParserError("<html>"), "not from AWS", False),
        (refused("ExpiredTokenException"), "log in again", False),
        (refused("UnrecognizedClientException"), "log in again", False),
        (refused("ThrottlingException"), "try again", False),
        (refused("ServiceQuotaExceededException", 402), "a higher quota", False),
        (refused("AccessDeniedException"), "the own step", False),
        (refused("RequestTimeTooSkewed", 403), "the clock of this machine", False),
        (refused("RequestExpired"), "the clock of this machine", False),
        (refused("InvalidSignatureException", 403), "the clock of this machine", False),
        (refused("SignatureDoesNotMatch", 403), "log in again", False),
        (refused("InvalidToken"), "log in again", False),
        (refused("MissingAuthenticationTokenException", 403), "log in again", False),
        (refused("PermanentRedirect", 301), "the region of the bucket", False),
        (refused("301", 301), "the region of the bucket", False),
        (refused("AuthorizationHeaderMalformed"), "the region of the bucket", False),
        (refused("407", 407), "HTTPS_PROXY", False),
        (refused("NotImplemented", 501), "the own step", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_its_next_step(error: Exception, words: str, is_unsent: bool) -> None:  # noqa: FBT001 - a column
    """Only a request that has left this machine can have started anything."""
    step = step_of(error, "the own step")
    assert words in step.todo
    assert step.is_unsent is is_unsent


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (refused("TooManyRequestsException", 429), EXIT_TRY_AGAIN),
        (refused("429", 429), EXIT_TRY_AGAIN),
        (refused("503", 503), EXIT_TRY_AGAIN),
        (refused("InternalServerError", 500), EXIT_TRY_AGAIN),
        (refused("AnyName", 504), EXIT_TRY_AGAIN),
        (refused("KMSThrottlingException"), EXIT_TRY_AGAIN),
        (refused("ProvisionedThroughputExceededException"), EXIT_TRY_AGAIN),
        (refused("RequestTimeout"), EXIT_TRY_AGAIN),
        (refused("ServiceQuotaExceededException", 402), EXIT_TRY_AGAIN),
        (ForeignAnswerError(status=200, service="S3"), EXIT_TRY_AGAIN),
        (refused("AccessDenied", 403), EXIT_FAILED),
        (refused("404", 404), EXIT_FAILED),
        (refused("501", 501), EXIT_FAILED),
    ],
    ids=str,
)
def test_what_passes_by_itself_is_worth_another_try(error: Exception, exit_code: int) -> None:
    """Such an error has the exit code for that, also by its status alone."""
    assert failed("text", error, "todo").exit_code == exit_code
