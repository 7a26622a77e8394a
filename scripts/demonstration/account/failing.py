"""An event that fails: it comes to the failure queue with its result, and is invoked again as the same run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scripts.accommodations import ROWS, csv_bytes

if TYPE_CHECKING:
    from scripts.demonstration.account.journey import Journey

_LATE: Final = "raw/late.csv"
_WAIT_S: Final = 120.0


def failed_and_redriven(journey: Journey) -> None:
    """Invoke asynchronously before the source is there; redrive when it is."""
    journey.act("An event before its source is there: failure queue, redrive")
    before = journey.table()
    event = journey.event("accommodations_delta", "late", source=_LATE)
    # By the function's name: ministack reads the treatment of failed events of no alias.
    name = journey.made["FunctionName"]
    sent = journey.soal("invoke", journey.event_file(event), "--function", name, "--async", "--json")
    journey.check("Lambda takes the event", holds=sent.exit_code == 0)
    waited = journey.waits("the failure queue", lambda: waiting(journey, "FailureQueueUrl") == 1, _WAIT_S)
    (record,) = _peeked(journey) or ({},)
    journey.check(
        f"after {waited or _WAIT_S:.0f} s the failure queue holds the event, with the result FAILED",
        holds=record.get("requestPayload") == event and _state_in(record) == "FAILED",
    )
    journey.client("s3").put_object(Bucket=journey.made["LakeBucket"], Key=_LATE, Body=csv_bytes())
    queue = journey.made["FailureQueueUrl"]
    said = journey.soal("redrive", "--queue-url", queue, "--function", journey.made["InvokeArn"], "--json")
    journey.check("soal redrive sends it", holds=[one["what"] for one in said.document or ()] == ["sent"])
    journey.waits("the redriven run", lambda: journey.run_of("late").get("state") == "SUCCESS", _WAIT_S)
    seen = journey.table()
    journey.check(
        f"its rows are in the table once: {before.rows:,} + {ROWS:,}",
        holds=(seen.rows, seen.orphans) == (before.rows + ROWS, ()),
    )
    waited = journey.waits("the failure queue", lambda: waiting(journey, "FailureQueueUrl") == 0, _WAIT_S)
    journey.check("the failure queue is empty", holds=waited is not None)


def waiting(journey: Journey, output: str) -> int:
    """Return how many messages SQS counts in a queue of the stack, also those that somebody has received."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = journey.client("sqs").get_queue_attributes(QueueUrl=journey.made[output], AttributeNames=names)
    return sum(int(found["Attributes"][name]) for name in names)


def _peeked(journey: Journey) -> list[dict[str, Any]]:
    """Receive the records of the failure queue, and leave them there."""
    client, queue = journey.client("sqs"), journey.made["FailureQueueUrl"]
    found = client.receive_message(QueueUrl=queue, VisibilityTimeout=0, MaxNumberOfMessages=10)
    return [json.loads(message["Body"]) for message in found.get("Messages", ())]


def _state_in(record: dict[str, Any]) -> object:
    """Return the state of the result in Lambda's record of a failed invocation."""
    return json.loads(record["responsePayload"]["errorMessage"])["state"]
