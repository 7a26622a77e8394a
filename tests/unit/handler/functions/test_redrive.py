"""On moto: the queue, and a Lambda that accepts every event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from handler.functions.redrive import lambda_handler, redrive
from handler.functions.redrive_queue import Redriven
from handler.input_errors import InputError
from tests.support.page import page

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with mock_aws(config={"lambda": {"use_docker": False}}):
        yield


def environment(**changes: str) -> dict[str, str]:
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="failures")["QueueUrl"]
    record = {"requestContext": {"requestId": "r"}, "requestPayload": {"clientToken": "t"}}
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(record))
    parked = sqs.create_queue(QueueName="parked")["QueueUrl"]
    names = {"SOAL_REDRIVE_QUEUE": url, "SOAL_REDRIVE_PARKED": parked, "SOAL_REDRIVE_FUNCTION": "soal"}
    return {**names, "SOAL_REDRIVE_ATTEMPTS": "3", **changes}


def messages(url: str) -> list[str]:
    found = boto3.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", ())
    return [one["Body"] for one in found]


def make_function() -> None:
    role = boto3.client("iam").create_role(RoleName="job", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    code: Any = {"ImageUri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/soal:one"}
    boto3.client("lambda").create_function(FunctionName="soal", Role=role, PackageType="Image", Code=code)


def test_what_has_failed_is_invoked_again() -> None:
    """It is invoked asynchronously and deleted from the queue."""
    make_function()
    (one,) = redrive(environment())
    assert (one.what, one.attempt) == ("sent", 1)
    assert one.request_id


def test_what_lambda_does_not_take_stays() -> None:
    """The message stays in the queue, and the answer says why Lambda refused it."""
    (one,) = redrive(environment(SOAL_REDRIVE_FUNCTION=""))
    assert one.what == "failed"
    assert "FunctionName" in str(one.reason)


def test_what_a_proxy_has_taken_in_lambdas_place_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its page is no request id, so the event stays in the queue."""
    names = environment()
    with page() as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", proxy)
        (one,) = redrive(names)
    assert one.what == "failed"
    assert "not from Lambda" in str(one.reason)
    assert len(messages(names["SOAL_REDRIVE_QUEUE"])) == 1


@pytest.mark.parametrize("code", ["RequestTooLargeException", "InvalidRequestContentException"])
def test_what_lambda_never_takes_is_set_aside(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be refused before other messages in each pass; a message that Lambda may accept later stays."""
    errors = iter((code, "TooManyRequestsException"))

    class Refusing:
        def invoke(self, **_: object) -> None:
            raise ClientError({"Error": {"Code": next(errors), "Message": "no"}}, "Invoke")

    sqs, names = boto3.client("sqs"), environment()
    with monkeypatch.context() as patched:
        patched.setattr("handler.functions.redrive.client_of", lambda name, _: Refusing() if name == "lambda" else sqs)
        assert [one.what for one in redrive(names)] == ["parked"]
        (body,) = messages(names["SOAL_REDRIVE_PARKED"])
        sqs.send_message(QueueUrl=names["SOAL_REDRIVE_QUEUE"], MessageBody=body)
        assert [one.what for one in redrive(names)] == ["failed"]
    assert messages(names["SOAL_REDRIVE_QUEUE"]) == [body]


def test_a_wrong_setting_is_named() -> None:
    """Without a limit nothing is invoked."""
    with pytest.raises(InputError, match="SOAL_REDRIVE_ATTEMPTS"):
        tuple(redrive(environment(SOAL_REDRIVE_ATTEMPTS="0")))


def test_a_pass_that_ends_early_has_told_what_it_has_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function fails with the error; the log before it lists the events that Lambda has."""
    sent = Redriven("m-1", "sent", None, 1, "request")

    def passing(_environment: object) -> Iterator[Redriven]:
        yield sent
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteMessage")

    told: list[str] = []
    monkeypatch.setattr("handler.functions.redrive.redrive", passing)
    monkeypatch.setattr(
        "handler.functions.redrive.observability.logger.info", lambda *_, **keys: told.append(keys["what"])
    )
    with pytest.raises(ClientError):
        undecorated(lambda_handler)({}, None)
    assert told == ["sent"]


def undecorated(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
