"""`soal redrive` behind a proxy; what a message becomes: tests/unit/handler/functions/test_redrive_queue.py."""

from __future__ import annotations

import json

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from soal.console.problem import EXIT_FAILED
from tests.support.command_line import app
from tests.support.page import page

pytestmark = pytest.mark.slow


@mock_aws
def test_what_a_proxy_has_taken_in_lambdas_place_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is not deleted, and the command says that the answer is not Lambda's."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="failures")["QueueUrl"]
    record = {"requestContext": {"requestId": "r"}, "requestPayload": {"clientToken": "t"}}
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(record))
    with page() as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", proxy)
        done = CliRunner().invoke(app, ["redrive", "--queue-url", url, "--function", "soal", "--json"])
    assert done.exit_code == EXIT_FAILED
    (one,) = json.loads(done.stdout)
    assert one["what"] == "failed"
    assert "not from Lambda" in one["reason"]
    assert len(sqs.receive_message(QueueUrl=url)["Messages"]) == 1
