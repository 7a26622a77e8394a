"""What an operator sees: runs, logs, the doctor, and nothing to recover."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scripts.account.server import Account

if TYPE_CHECKING:
    from scripts.demonstration.account.journey import Journey

_INVENTED: Final = frozenset({"role", "sweeper's role", "retention"})
"""What the doctor finds wrong in ministack, and would not on AWS: docs/guides/local."""
_DEAF: Final = "subscriptions"
"""What the doctor finds with `--profile`: the journey subscribes nobody to the alarms there."""
_EARS: Final = "soal-ears"
_FAR: Final = 1000
"""More than a sum of real values could make up for."""
_HEARD_S: Final = 60.0
_WAIT_S: Final = 120.0
_BAD: Final = ("fail", "warn")


def listening(journey: Journey) -> None:
    """Subscribe a queue to the topic of the alarms, before the first of them rings."""
    sqs = journey.client("sqs")
    queue = sqs.create_queue(QueueName=_EARS)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = journey.made["AlarmTopicArn"]
    sends = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
    own = {**sends, "Resource": arn, "Condition": {"ArnEquals": {"aws:SourceArn": topic}}}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [own]})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
    journey.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)


def alarmed(journey: Journey) -> None:
    """Each alarm gets a value of its metric beyond its threshold, and the subscriber of the topic hears of it."""
    journey.act("Each alarm: a value beyond it, put by hand; a queue on the topic hears")
    sqs, cloudwatch = journey.client("sqs"), journey.client("cloudwatch")
    queue = sqs.get_queue_url(QueueName=_EARS)["QueueUrl"]
    alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    for alarm in alarms:
        far = -_FAR if "LessThan" in alarm["ComparisonOperator"] else _FAR
        datum = {name: alarm[name] for name in ("MetricName", "Dimensions")} | {"Value": alarm["Threshold"] + far}
        cloudwatch.put_metric_data(Namespace=alarm["Namespace"], MetricData=[datum])
    names = {alarm["AlarmName"] for alarm in alarms}
    heard: set[str] = set()
    journey.waits("the messages", lambda: names <= heard.union(_heard(sqs, queue, heard)), _HEARD_S)
    journey.line("alarms", f"{len(names)}; not heard: {', '.join(sorted(names - heard)) or 'none'}")
    journey.check(
        f"the queue has got a message of each of the {len(names)} alarms", holds=bool(names) and names <= heard
    )


def _heard(sqs: Any, queue: str, heard: set[str]) -> set[str]:  # noqa: ANN401 - a boto3 client
    """Add the alarms whose messages are in the queue now."""
    for message in sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", ()):
        said = json.loads(json.loads(message["Body"])["Message"])
        if said["NewStateValue"] == "ALARM":
            heard.add(said["AlarmName"])
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return heard


def operated(journey: Journey) -> None:
    """Look at everything, at the end."""
    journey.act("What an operator sees")
    runs = journey.soal("runs", "list", "--json").document or []
    ended = {run["runKey"]: run["state"] for run in runs}
    journey.line("runs", f"{len(runs)}: {', '.join(sorted(set(map(str, ended.values()))))}")
    wanted = {"first": "SUCCESS", "late": "SUCCESS", "hung": "TIMED_OUT"}
    if isinstance(journey.account, Account):
        wanted |= dict.fromkeys(("recovered", "killed", "swept"), "SUCCESS")
    journey.check("soal runs lists each run with its end", holds=wanted.items() <= ended.items())
    function = journey.made["FunctionName"]
    logged = journey.soal("logs", "late", "--function", function)
    journey.check("soal logs shows why a job failed, from CloudWatch", holds="Path does not exist" in logged.out)
    found = journey.soal("doctor", "--function", journey.made["InvokeArn"], "--json").document or []
    bad = [one["name"] for one in found if one["status"] in _BAD]
    own = f"{journey.stack}-"
    ringing = journey.client("cloudwatch").describe_alarms(StateValue="ALARM", AlarmNamePrefix=own)["MetricAlarms"]
    known = _INVENTED if "AWS_ENDPOINT_URL" in journey.account.aws else frozenset()
    known |= set() if isinstance(journey.account, Account) else {_DEAF}
    journey.line("doctor", f"{len(found)} findings; not ok: {', '.join(bad) or 'none'}")
    journey.check(
        f"soal doctor finds the {len(ringing)} alarm(s) that CloudWatch describes as ringing, and nothing else wrong"
        f" but what is known here: {', '.join(sorted(known))}",
        holds=bool(found) and bad.count("alarm") == len(ringing) and set(bad) <= {"alarm", *known},
    )
    # The schedule goes on: the write of a job that runs at this moment is open, too.
    waited = journey.waits("the running jobs", lambda: journey.soal("recover", "--dry-run").exit_code == 0, _WAIT_S)
    journey.check("soal recover finds no open write", holds=waited is not None)
