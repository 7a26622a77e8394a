"""Messages as Lambda, SQS and EventBridge put them into the failure queue."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from handler.outcome.result import ErrorResult
from handler.outcome.state import State
from tests.unit.handler.outcome.test_result import result

SCHEDULE = {"source": "aws.events", "detail-type": "Scheduled Event", "id": "e-1", "detail": {}}
SQS = {"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": "hello"}]}
ARN = "arn:aws:lambda:us-east-1:123456789012:function:jobs:live"
LONG_KEY = urllib.parse.quote_plus("\u65e5" * 115) + ".csv"
S3 = {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": {"name": "in"}, "object": {"key": LONG_KEY}}}]}
JOB = json.dumps({"script": "s3://scripts/good.py"})
ERROR = {"ErrorCode": {"DataType": "Number", "StringValue": "200"}}
RULE = {"RULE_ARN": {"DataType": "String", "StringValue": "arn:aws:events:us-east-1:123456789012:rule/nightly"}}
FROM_JOBS = {"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:jobs"}
STATED = {"DataType": "String", "StringValue": FROM_JOBS["DeadLetterQueueSourceArn"]}
MESSAGE_MAX_BYTES = 1_048_576
UNREADABLE = '{"requestContext": {}, "requestPayload": {}}'


def record(event: object, answer: object, request_id: str = "request") -> str:
    """Return Lambda's message in the queue after the last failed retry of an asynchronous invocation."""
    context = {"requestId": request_id, "functionArn": ARN, "condition": "RetriesExhausted"}
    return json.dumps({"version": "1.0", "requestContext": context, "requestPayload": event, "responsePayload": answer})


def failed(state: State = State.TIMED_OUT, attempt: int = 1, **error: Any) -> dict[str, str]:
    fault = ErrorResult(**{"type": "E", "message": "m", "field": None, "retryable": False, "usage": False, **error})
    answer = result(state, fault).model_copy(update={"attempt": attempt})
    return {"errorType": "JobFailed", "errorMessage": json.dumps(answer.document())}
