"""Jobs that a service starts: a new object, a message, a schedule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scripts.accommodations import ROWS, csv_bytes
from scripts.demonstration.account.deploying import LANDING
from scripts.demonstration.account.failing import waiting

if TYPE_CHECKING:
    from scripts.demonstration.account.stage import Journey

_WAIT_S: Final = 180.0
_VISIBLE_S: Final = 5
"""Of a message that has failed, instead of six timeouts of the function, as the stack sets it."""


def object_landed(journey: Journey) -> None:
    """A new object in a bucket: S3 tells EventBridge, whose rule invokes the function."""
    journey.act("A new object: S3, EventBridge, job")
    journey.client("s3").put_object(Bucket=LANDING, Key="today.csv", Body=csv_bytes())
    waited = journey.waits("the job of the object", lambda: journey.look("landed").rows > 0, _WAIT_S)
    seen = journey.table("landed")
    journey.check(
        f"{waited or _WAIT_S:.0f} s later its rows are in a table, once", holds=(seen.rows, seen.orphans) == (ROWS, ())
    )


def message_sent(journey: Journey) -> None:
    """A message of the queue is a job; one that fails too often comes to the dead-letter queue, and is redriven."""
    journey.act("Messages: one is a job, one fails and is redriven")
    client, queue = journey.client("sqs"), journey.made["JobQueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody=json.dumps(_job(journey, "raw/accommodations.csv")))
    waited = journey.waits("the job of the message", lambda: journey.look("messages").rows > 0, _WAIT_S)
    seen = journey.table("messages")
    journey.check(f"{waited or _WAIT_S:.0f} s later its rows are in a table, once", holds=seen.rows == ROWS)
    journey.waits("the end of the message", lambda: waiting(journey, "JobQueueUrl") == 0, _WAIT_S)
    named = {"QueueUrl": queue, "AttributeNames": ["VisibilityTimeout"]}
    as_deployed = client.get_queue_attributes(**named)["Attributes"]
    client.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": str(_VISIBLE_S)})
    client.send_message(QueueUrl=queue, MessageBody=json.dumps(_job(journey, "raw/later.csv")))
    waited = journey.waits("the dead-letter queue", lambda: waiting(journey, "FailureQueueUrl") == 1, _WAIT_S)
    client.set_queue_attributes(QueueUrl=queue, Attributes=as_deployed)
    journey.check(
        f"a message whose source is not there: after {waited or _WAIT_S:.0f} s the failure queue has it",
        holds=waited is not None and waiting(journey, "JobQueueUrl") == 0,
    )
    journey.client("s3").put_object(Bucket=journey.made["LakeBucket"], Key="raw/later.csv", Body=csv_bytes())
    to = ("--queue-url", journey.made["FailureQueueUrl"], "--function", journey.made["InvokeArn"])
    said = journey.soal("redrive", *to, "--job-queue-arn", journey.made["JobQueueArn"], "--attempts-max", "9", "--json")
    journey.check("soal redrive sends it", holds=[one["what"] for one in said.document or ()] == ["sent"])
    journey.waits("the redriven run", lambda: journey.look("messages").rows > seen.rows, _WAIT_S)
    after = journey.table("messages")
    journey.check("its rows are in the table once", holds=(after.rows, after.orphans) == (seen.rows + ROWS, ()))


def _job(journey: Journey, source: str) -> dict[str, Any]:
    """Return a job document without a token: the handler makes the run's key of the message's id."""
    event = journey.event("accommodations_delta", "", source=source, table="messages")
    return {name: value for name, value in event.items() if name != "clientToken"}


def ticked(journey: Journey) -> None:
    """A schedule starts a job each minute."""
    journey.act("A schedule")
    seconds = journey.deploy(schedule="rate(1 minute)")
    journey.line("deploy", f"{seconds:.0f} s")
    waited = journey.waits("the job of the schedule", lambda: journey.look("ticks").rows > 0, _WAIT_S)
    seen = journey.table("ticks")
    journey.check(
        f"{waited or _WAIT_S:.0f} s later its job has written a row for each event",
        holds=seen.rows > 0 and seen.version == seen.rows - 1,
    )
