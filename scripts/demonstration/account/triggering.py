"""Jobs that a service starts: a new object, a message, a schedule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scripts.accommodations import ROWS, csv_bytes
from scripts.demonstration.account.failing import waiting
from scripts.demonstration.account.killing import HUNG_S, held, hold

if TYPE_CHECKING:
    from scripts.demonstration.account.journey import Journey

_WAIT_S: Final = 180.0
_VISIBLE_S: Final = 5
"""Of a message that has failed, instead of six timeouts of the function, as the stack sets it."""

_AGAIN_S: Final = 60
"""Of a message whose job has met another one's commit: by then the other one has ended."""
_OVERLAP_S: Final = 10
_SECOND: Final = 2


def object_landed(journey: Journey) -> None:
    """A new object in a bucket: S3 tells EventBridge, whose rule invokes the function."""
    journey.act("A new object: S3, EventBridge, job")
    journey.client("s3").put_object(Bucket=journey.landing, Key="today.csv", Body=csv_bytes())
    waited = journey.waits("the job of the object", lambda: journey.look("landed").rows > 0, _WAIT_S)
    seen = journey.table("landed")
    journey.check(
        f"{waited or _WAIT_S:.0f} s later its rows are in a table, once", holds=(seen.rows, seen.orphans) == (ROWS, ())
    )


def message_sent(journey: Journey) -> None:
    """A message of the queue is a job."""
    journey.act("A message: SQS, job")
    client, queue = journey.client("sqs"), journey.made["JobQueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody=json.dumps(_job(journey, "raw/accommodations.csv")))
    waited = journey.waits("the job of the message", lambda: journey.look("messages").rows > 0, _WAIT_S)
    seen = journey.table("messages")
    journey.check(f"{waited or _WAIT_S:.0f} s later its rows are in a table, once", holds=seen.rows == ROWS)
    waited = journey.waits("the end of the message", lambda: waiting(journey, "JobQueueUrl") == 0, _WAIT_S)
    journey.check("the queue is empty", holds=waited is not None)


def message_redriven(journey: Journey) -> None:
    """A message that fails too often comes to the dead-letter queue, and is redriven."""
    journey.act("A message that fails: dead-letter queue, redrive")
    client, queue, seen = journey.client("sqs"), journey.made["JobQueueUrl"], journey.table("messages")
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


def two_at_once(journey: Journey) -> None:
    """Two messages at once are the first jobs of a table: one meets the commit of the other, and is repeated."""
    journey.act("Two messages at once: the first jobs of a table that is not there yet")
    client, queue = journey.client("sqs"), journey.made["JobQueueUrl"]
    named = {"QueueUrl": queue, "AttributeNames": ["VisibilityTimeout"]}
    as_deployed = client.get_queue_attributes(**named)["Attributes"]
    client.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": str(_AGAIN_S)})
    hold(journey, "write", _OVERLAP_S)
    tokens = ("fan-1", "fan-2")
    bodies = [json.dumps(held(journey, token, "fan")) for token in tokens]
    entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
    client.send_message_batch(QueueUrl=queue, Entries=entries)
    waited = journey.waits("the end of both", lambda: waiting(journey, "JobQueueUrl") == 0, _WAIT_S)
    client.set_queue_attributes(QueueUrl=queue, Attributes=as_deployed)
    runs = [journey.run_of(token) for token in tokens]
    attempts = sorted(run.get("attempt", 0) for run in runs)
    journey.line("attempts", " and ".join(map(str, attempts)))
    journey.check(
        f"after {waited or _WAIT_S:.0f} s both are SUCCESS, and one of them has needed a second attempt",
        holds=[run.get("state") for run in runs] == ["SUCCESS", "SUCCESS"] and attempts[0] == 1 < attempts[1],
    )
    seen = journey.table("fan")
    journey.check(
        f"the rows of both are in the table once: 2 * {ROWS:,}", holds=(seen.rows, seen.orphans) == (2 * ROWS, ())
    )


def _job(journey: Journey, source: str) -> dict[str, Any]:
    """Return a job document without a token: the handler makes the run's key of the message's id."""
    event = journey.event("accommodations_delta", "", source=source, table="messages")
    return {name: value for name, value in event.items() if name != "clientToken"}


def scheduled(journey: Journey) -> None:
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


def retried_by_state_machine(journey: Journey) -> None:
    """A state machine repeats an attempt that its deadline has ended, and tells a failure."""
    journey.act("A state machine: an attempt that its deadline ends after a commit, and the next one")
    seconds = journey.deploy(state_machine="true")
    journey.line("deploy", f"{seconds:.0f} s")
    hold(journey, "end", HUNG_S)
    first = _executed(journey, held(journey, "", "steps"))
    journey.waits("its commit", lambda: journey.look("steps").rows > 0, _WAIT_S)
    hold(journey, "none", 0)
    waited = journey.waits("the machine", lambda: _execution(journey, first)["status"] != "RUNNING", 2 * _WAIT_S)
    found, seen = _execution(journey, first), journey.table("steps")
    journey.check(
        f"{waited or 2 * _WAIT_S:.0f} s later the execution has SUCCEEDED, by the second attempt of its run",
        holds=found["status"] == "SUCCEEDED" and json.loads(found["output"]).get("attempt") == _SECOND,
    )
    journey.check("the rows are in the table once", holds=(seen.rows, seen.orphans) == (ROWS, ()))
    second = _executed(journey, journey.event("accommodations_delta", "", source="raw/nowhere.csv", table="steps"))
    journey.waits("the machine", lambda: _execution(journey, second)["status"] != "RUNNING", _WAIT_S)
    found = _execution(journey, second)
    journey.check(
        "an execution whose source is not there has FAILED, and says why",
        holds=(found["status"], found.get("error")) == ("FAILED", "FAILED") and "nowhere.csv" in found.get("cause", ""),
    )


def _executed(journey: Journey, event: dict[str, Any]) -> str:
    """Start an execution, whose name is the run's key; return its ARN."""
    given = json.dumps({name: value for name, value in event.items() if name != "clientToken"})
    client, machine = journey.client("stepfunctions"), journey.made["StateMachineArn"]
    return str(client.start_execution(stateMachineArn=machine, input=given)["executionArn"])


def _execution(journey: Journey, arn: str) -> dict[str, Any]:
    return dict(journey.client("stepfunctions").describe_execution(executionArn=arn))
