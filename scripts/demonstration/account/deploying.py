"""From an empty account to the first result, as the guide says; an update in place; the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from scripts.accommodations import ROWS, csv_bytes
from scripts.account.deployment import deployer_of
from scripts.account.server import environment
from scripts.demonstration.account.journey import SOURCE
from scripts.demonstration.account.killing import in_a_write, repeat_lands_once
from scripts.local.sample import JOBS
from soal.console.progress import JobProgress
from soal.local.names import REGION

if TYPE_CHECKING:
    from scripts.demonstration.account.journey import Journey

GLUE_DATABASE: Final = "soal"
SHORT_S: Final = 120
"""A new sandbox of a busy machine takes a minute for a job."""
MEMORY_MB: Final = 3008
_IN_FLIGHT_S: Final = 240
"""Longer than an update."""
_OWN_JOBS: Final = Path(__file__).with_name("jobs")


def bootstrapped(journey: Journey, image: str) -> None:
    """Make what an empty account needs: the bootstrap, a deployer, and the image in its registry."""
    journey.act("From an empty account to the first result")
    with JobProgress(journey.console, "cdk bootstrap"):
        seconds = journey.deployment.bootstrap()
    journey.line("bootstrap", f"{seconds:.0f} s")
    deployer = environment(deployer_of(journey.account.aws))
    journey.deployment = replace(journey.deployment, variables=deployer)
    journey.line("deployer", "a user who may only assume the roles of the bootstrap")
    _push(journey, image)
    first_result(journey, alarm_email="you@example.org", image_uri=image)


def first_result(journey: Journey, **context: str) -> None:
    """Deploy, upload, invoke, and invoke again."""
    seconds = journey.deploy(lake_bucket="true", **context)
    stack, resources = _stack(journey)
    journey.line("deploy", f"{seconds:.0f} s, {resources} resources")
    journey.check(
        "CloudFormation describes the stack as CREATE_COMPLETE", holds=stack["StackStatus"] == "CREATE_COMPLETE"
    )
    function = journey.client("lambda").get_function(FunctionName=journey.made["FunctionName"])
    found = function["Configuration"]
    image = journey.context.get("image_uri", function["Code"]["ImageUri"])
    journey.check(
        f"Lambda describes the function: active, {MEMORY_MB} MB, 900 s, the image {image}",
        holds=(found["State"], found["MemorySize"], found["Timeout"], function["Code"]["ImageUri"])
        == ("Active", MEMORY_MB, 900, image),
    )
    put_sample(journey)
    event = journey.event("accommodations_delta", "first")
    said = journey.invoke(event)
    journey.check("the first job succeeds, in a container", holds=said.state == "SUCCESS")
    seen = journey.table()
    journey.check(f"the table holds the {ROWS:,} rows of the file", holds=(seen.rows, seen.orphans) == (ROWS, ()))
    said = journey.invoke(event)
    again = journey.table()
    journey.check(
        "the same event again succeeds, and nothing is written twice",
        holds=said.state == "SUCCESS" and again == seen,
    )


def _push(journey: Journey, image: str) -> None:
    """Tell the account's registry of the image, as a push does; the layers stay with Docker."""
    repository, _, tag = image.rpartition("/")[2].partition(":")
    client = journey.client("ecr")
    client.create_repository(repositoryName=repository)
    client.put_image(repositoryName=repository, imageTag=tag, imageManifest=json.dumps({"schemaVersion": 2}))


def put_sample(journey: Journey) -> None:
    """Upload the sample jobs, those of the journey, and the sample file."""
    client = journey.client("s3")
    for job in sorted([*JOBS.glob("*.py"), *_OWN_JOBS.glob("*.py")]):
        client.put_object(Bucket=journey.made["ScriptBucket"], Key=f"jobs/{job.name}", Body=job.read_bytes())
    client.put_object(Bucket=journey.made["LakeBucket"], Key=SOURCE, Body=csv_bytes())


def updated(journey: Journey) -> None:
    """Update in place: another timeout, triggers, a sweeper that comes each minute."""
    journey.act("An update in place: timeout, queue, S3 trigger, sweeper")
    client = journey.client("s3")
    region = journey.deployment.region
    # S3 refuses to hear of the region that it takes by default.
    elsewhere = {} if region == REGION else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    client.create_bucket(Bucket=journey.landing, **elsewhere)
    client.put_bucket_notification_configuration(
        Bucket=journey.landing, NotificationConfiguration={"EventBridgeConfiguration": {}}
    )
    name, before = journey.made["FunctionName"], journey.table()
    job = in_a_write(journey, "in-flight", _IN_FLIGHT_S)
    tables = json.dumps({"TABLES": f"s3a://{journey.made['LakeBucket']}"})
    seconds = journey.deploy(
        timeout_s=str(SHORT_S), sweep_minutes="1", queue="true", s3_trigger=journey.landing, environment=tables,
        entry_point="jobs/triggered.py", glue_databases=GLUE_DATABASE,
    )  # fmt: skip
    stack, resources = _stack(journey)
    journey.line("deploy", f"{seconds:.0f} s, {resources} resources")
    journey.check(
        "CloudFormation describes the stack as UPDATE_COMPLETE", holds=stack["StackStatus"] == "UPDATE_COMPLETE"
    )
    lambda_ = journey.client("lambda")
    alias = lambda_.get_alias(FunctionName=name, Name="live")
    found = lambda_.get_function_configuration(FunctionName=journey.made["InvokeArn"])
    journey.check(
        f"Lambda describes the same function: its alias leads to version 2, with {SHORT_S} s",
        holds=(journey.made["FunctionName"], alias["FunctionVersion"], found["Timeout"]) == (name, "2", SHORT_S),
    )
    # On AWS it would go on: ministack ends the containers of a function that is updated.
    journey.show(journey.wait_for(job))
    repeat_lands_once(journey, "in-flight", before)


def destroyed(journey: Journey) -> None:
    """Destroy the stack; what holds data stays."""
    journey.act("The end: cdk destroy")
    before = journey.table()
    kept = {journey.made[name] for name in ("LakeBucket", "CheckpointBucket", "ScriptBucket")}
    with JobProgress(journey.console, "cdk destroy"):
        seconds = journey.deployment.destroy(journey.context)
    journey.line("destroy", f"{seconds:.0f} s")
    journey.check("CloudFormation describes no such stack any more", holds=not _is_there(journey))
    pages = journey.client("lambda").get_paginator("list_functions").paginate()
    names = {one["FunctionName"] for page in pages for one in page["Functions"]}
    own = {name for name in names if name.startswith(f"{journey.stack}-")}
    journey.check("Lambda lists no function of the stack", holds=not own)
    buckets = {one["Name"] for one in journey.client("s3").list_buckets()["Buckets"]}
    journey.check("S3 lists the buckets with data, which stay", holds=kept <= buckets)
    journey.check("the table is as it was", holds=journey.table() == before)


def _stack(journey: Journey) -> tuple[dict[str, Any], int]:
    client = journey.client("cloudformation")
    (stack,) = client.describe_stacks(StackName=journey.stack)["Stacks"]
    pages = client.get_paginator("list_stack_resources").paginate(StackName=journey.stack)
    return stack, sum(len(page["StackResourceSummaries"]) for page in pages)


def _is_there(journey: Journey) -> bool:
    try:
        stack, _ = _stack(journey)
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        return False
    return bool(stack["StackStatus"] != "DELETE_COMPLETE")
