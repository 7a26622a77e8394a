"""On moto: the queue, and a Lambda that takes what it is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from handler.functions.redrive import redrive
from handler.input_errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    names = {"SOAL_REDRIVE_QUEUE": url, "SOAL_REDRIVE_FUNCTION": "soal", "SOAL_REDRIVE_ATTEMPTS": "3"}
    return {**names, **changes}


def make_function() -> None:
    role = boto3.client("iam").create_role(RoleName="job", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    code: Any = {"ImageUri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/soal:one"}
    boto3.client("lambda").create_function(FunctionName="soal", Role=role, PackageType="Image", Code=code)


def test_what_has_failed_is_invoked_again() -> None:
    """Asynchronously, and taken out of the queue."""
    make_function()
    (one,) = redrive(environment())
    assert (one.what, one.attempt) == ("sent", 1)
    assert one.request_id


def test_what_lambda_does_not_take_stays() -> None:
    """The message stays in the queue, and the answer says why Lambda did not take it."""
    (one,) = redrive(environment(SOAL_REDRIVE_FUNCTION=""))
    assert one.what == "failed"
    assert "FunctionName" in str(one.reason)


def test_a_good_message_behind_hopeless_ones_is_sent_in_one_pass() -> None:
    """They are set aside, where they can be read, and are none of the hundred of a pass."""
    make_function()
    sqs = boto3.client("sqs")
    failures = sqs.create_queue(QueueName="failures")["QueueUrl"]
    parked = sqs.create_queue(QueueName="parked")["QueueUrl"]
    hopeless = json.dumps({"requestContext": {}, "requestPayload": {}})
    for _ in range(12):
        entries: Any = [{"Id": str(one), "MessageBody": hopeless} for one in range(10)]
        sqs.send_message_batch(QueueUrl=failures, Entries=entries)
    done = redrive(environment(SOAL_REDRIVE_PARKED=parked))
    assert sorted(one.what for one in done) == [*["parked"] * 120, "sent"]
    found = sqs.get_queue_attributes(QueueUrl=parked, AttributeNames=["All"])["Attributes"]
    assert found["ApproximateNumberOfMessages"] == "120"


def test_a_pass_ends_when_its_time_does() -> None:
    """Messages that it has not received stay as they are."""
    assert redrive(environment(), lambda: False) == ()


def test_a_wrong_setting_is_named() -> None:
    """Without a bound nothing is invoked."""
    with pytest.raises(InputError, match="SOAL_REDRIVE_ATTEMPTS"):
        redrive(environment(SOAL_REDRIVE_ATTEMPTS="0"))
