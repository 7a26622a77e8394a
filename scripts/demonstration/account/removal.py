"""Remove what a journey has made in an account, also what `cdk destroy` keeps, and nothing else.

What it removes is named by CloudFormation's list of the run's own stack, by the run's own name, or by the manifest of
its assets. What cannot be removed is returned, each with a command.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from scripts.demonstration.account.journey import Journey

_STACK_TIMEOUT_S: Final = 1800.0
_POLL_S: Final = 2.0
_UNBEGUN: Final = "REVIEW_IN_PROGRESS"
"""The status of a stack that has only a change set."""
_TRIES: Final = 3
"""A job that still runs may write into a bucket once more."""
_GONE: Final = frozenset(
    {
        "NoSuchBucket",
        "NoSuchUpload",
        "ResourceNotFoundException",
        "RepositoryNotFoundException",
        "ImageNotFoundException",
    }
)


@dataclass(frozen=True, slots=True)
class Left:
    """What could not be removed, why, and the command that does it."""

    what: str
    why: str
    command: str


@dataclass(slots=True)
class Removal:
    """The removal of a run, which began at `begun` by the account's clock."""

    journey: Journey
    begun: datetime
    _noted: dict[str, set[str]] = field(default_factory=dict)
    _stack_id: str | None = None

    def note(self) -> None:
        """Note what the stack has now: after its end CloudFormation may not tell it."""
        client = self.journey.client("cloudformation")
        described = self._described()
        if described is None:
            return
        self._stack_id = described["StackId"]
        pages = client.get_paginator("list_stack_resources").paginate(StackName=self._stack_id)
        for page in pages:
            for one in page["StackResourceSummaries"]:
                if one.get("PhysicalResourceId"):
                    self._noted.setdefault(one["ResourceType"], set()).add(one["PhysicalResourceId"])

    def remove(self) -> list[Left]:
        """Remove everything; return what is left. A second Ctrl-C gives up, and what was not tried is left, too."""
        where = f"--profile {self.journey.account.aws.get('AWS_PROFILE', 'NAME')}"
        stack, left = self.journey.stack, list[Left]()
        shown = f"aws cloudformation delete-stack --stack-name {stack} {where}"
        interrupted = not _tried(left, f"stack {stack}", shown, self._end_stack)
        for what, command, act in self._parts():
            if interrupted:
                left.append(Left(what, "interrupted", f"{command} {where}"))
            else:
                interrupted = not _tried(left, what, f"{command} {where}", act)
        return left

    def _parts(self) -> list[tuple[str, str, Callable[[], None]]]:
        """Return what outlives the stack: its name, a command, and the act that removes it."""
        client = self.journey.client
        parts: list[tuple[str, str, Callable[[], None]]] = []
        for name in sorted({*self._noted.get("AWS::S3::Bucket", ()), self.journey.landing}):
            command = f"# empty it, with all versions; then: aws s3api delete-bucket --bucket {name}"
            parts.append((f"bucket {name}", command, partial(remove_bucket, client("s3"), name)))
        for name in sorted(self._noted.get("AWS::DynamoDB::Table", ())):
            command = f"aws dynamodb delete-table --table-name {name}"
            parts.append((f"table {name}", command, partial(_remove_table, client("dynamodb"), name)))
        own = {f"/aws/lambda/{name}" for name in self._noted.get("AWS::Lambda::Function", ())}
        for name in sorted(self._noted.get("AWS::Logs::LogGroup", set()) | own):
            command = f"aws logs delete-log-group --log-group-name {name}"
            parts.append((f"log group {name}", command, partial(client("logs").delete_log_group, logGroupName=name)))
        for repository, tag in sorted(self._images()):
            command = f"aws ecr batch-delete-image --repository-name {repository} --image-ids imageTag={tag}"
            act = partial(_remove_image, client("ecr"), repository, tag, self.begun)
            parts.append((f"image {repository}:{tag}", command, act))
        return parts

    def _images(self) -> set[tuple[str, str]]:
        """Return repository and tag of the images that the manifest of the stack's assets names."""
        deployment = self.journey.deployment
        path = deployment.folder / "cdk.out" / f"{self.journey.stack}.assets.json"
        if not path.is_file():
            return set()
        text = path.read_text(encoding="utf-8")
        known = {"Partition": "aws", "AccountId": deployment.account, "Region": deployment.region}
        for name, value in known.items():
            text = text.replace(f"${{AWS::{name}}}", value)
        images = json.loads(text).get("dockerImages", {}).values()
        places = (place for image in images for place in image["destinations"].values())
        return {(place["repositoryName"], place["imageTag"]) for place in places}

    def _described(self) -> dict[str, Any] | None:
        """Return the stack as CloudFormation describes it; None if it says that there is none."""
        name = self._stack_id or self.journey.stack
        try:
            (found,) = self.journey.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return dict(found) if found["StackStatus"] != "DELETE_COMPLETE" else None

    def _end_stack(self) -> None:
        """Delete the stack, once CloudFormation has ended what it does with it."""
        self._until(lambda status: not status.endswith("_IN_PROGRESS") or status == _UNBEGUN)
        self.note()
        if self._described() is None:
            return
        self.journey.client("cloudformation").delete_stack(StackName=self._stack_id)
        self._until(lambda status: status == "DELETE_FAILED")
        if (found := self._described()) is not None:
            raise TimeoutError(f"its status is {found['StackStatus']}")

    def _until(self, holds: Callable[[str], bool]) -> None:
        """Wait, within a bound, until the stack is not there, or its status is as it is to be."""
        until = time.monotonic() + _STACK_TIMEOUT_S
        while (found := self._described()) is not None and not holds(str(found["StackStatus"])):
            if time.monotonic() > until:
                return
            time.sleep(_POLL_S)


def _tried(left: list[Left], what: str, command: str, act: Callable[[], Any]) -> bool:
    """Remove one thing, or add it to what is left; return False if somebody has interrupted it."""
    try:
        act()
    except KeyboardInterrupt:
        left.append(Left(what, "interrupted", command))
        return False
    except ClientError as error:
        if error.response["Error"]["Code"] not in _GONE:
            left.append(Left(what, str(error), command))
    except (BotoCoreError, OSError) as error:
        left.append(Left(what, str(error), command))
    return True


def remove_bucket(client: Any, name: str) -> None:  # noqa: ANN401 - a boto3 client
    """Empty a bucket, with all versions, marks of deletion and unfinished uploads, and delete it."""
    for last in (False,) * (_TRIES - 1) + (True,):
        for page in client.get_paginator("list_object_versions").paginate(Bucket=name):
            found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            if found:
                keys = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]
                client.delete_objects(Bucket=name, Delete={"Objects": keys, "Quiet": True})
        for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=name):
            for one in page.get("Uploads", ()):
                client.abort_multipart_upload(Bucket=name, Key=one["Key"], UploadId=one["UploadId"])
        try:
            client.delete_bucket(Bucket=name)
        except ClientError as error:
            if last or error.response["Error"]["Code"] != "BucketNotEmpty":
                raise
        else:
            return


def _remove_table(client: Any, name: str) -> None:  # noqa: ANN401 - a boto3 client
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.get_waiter("table_exists").wait(TableName=name)  # it cannot be deleted while it is updated
    client.delete_table(TableName=name)


def _remove_image(client: Any, repository: str, tag: str, begun: datetime) -> None:  # noqa: ANN401 - a boto3 client
    """Remove an image that was pushed since the run began: an older one is somebody else's, too."""
    named = {"repositoryName": repository, "imageIds": [{"imageTag": tag}]}
    (found,) = client.describe_images(**named)["imageDetails"]
    if found["imagePushedAt"] >= begun:
        client.batch_delete_image(**named)
