"""An error of AWS's client says its cause and the next step, and whether anything can have been started."""

from __future__ import annotations

import pytest
from botocore import exceptions as aws
from botocore.parsers import ResponseParserError

from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN
from soal.remote.failure import failed, step_of


def refused(code: str) -> aws.ClientError:
    return aws.ClientError({"Error": {"Code": code, "Message": "no"}}, "Invoke")


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
        (refused("AccessDeniedException"), "the own step", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_its_next_step(error: Exception, words: str, is_unsent: bool) -> None:  # noqa: FBT001 - a column
    """Only a request that has left this machine can have started anything."""
    step = step_of(error, "the own step")
    assert words in step.todo
    assert step.is_unsent is is_unsent


def test_what_passes_by_itself_is_worth_another_try() -> None:
    """Such an error has the exit code for that."""
    codes = [failed("text", refused(code), "todo").exit_code for code in ("TooManyRequestsException", "AccessDenied")]
    assert codes == [EXIT_TRY_AGAIN, EXIT_FAILED]
