"""The journey in the account of an AWS profile: its variables, and the removal of all that a run has made, no more."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from scripts.account.client import client_of, with_keys
from scripts.account.deployment import Deployment
from scripts.account.server import ACCOUNT, environment
from scripts.demonstration.account import playing, profile
from scripts.demonstration.account.journey import AccountOfProfile, Journey
from scripts.demonstration.account.profile import variables
from scripts.demonstration.account.removal import Removal
from scripts.demonstration.stage import Claims
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from soal.console.problem import Problem
from soal.console.screen import Screen
from soal.local.names import REGION
from tests.support.account import IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripts.account.server import Account

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NAME = "journey"
ONCE_A_SECOND = {"Delay": 1, "MaxAttempts": 60}
ATTRIBUTE = {"AttributeName": "lock", "AttributeType": "S"}
KEPT = {
    "Bucket": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"},
    "Logs": {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": "Retain"},
    "Locks": {
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "Properties": {
            "AttributeDefinitions": [ATTRIBUTE],
            "KeySchema": [{"AttributeName": "lock", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "DeletionProtectionEnabled": True,
        },
    },
}
"""What the end of the stack does not remove."""
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def aws(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a profile that leads to the account as its administrator."""
    own = account.aws
    lines = [
        f"[profile {NAME}]",
        f"region = {REGION}",
        f"endpoint_url = {own['AWS_ENDPOINT_URL']}",
        f"ca_bundle = {own['AWS_CA_BUNDLE']}",
        f"aws_access_key_id = {own['AWS_ACCESS_KEY_ID']}",
        f"aws_secret_access_key = {own['AWS_SECRET_ACCESS_KEY']}",
    ]
    config = tmp_path / "config"
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for other in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_REGION"):
        monkeypatch.setenv(other, "http://127.0.0.1:1")
    return variables(NAME)


def new_journey(aws: dict[str, str], folder: Path, stack: str) -> Journey:
    console = Screen(file=io.StringIO(), width=200)
    deployment = Deployment(ensure_account(Place(ROOT)), environment(aws), folder, stack, ACCOUNT, REGION)
    context = {"stack_name": stack, "image_uri": IMAGE}
    return Journey(console, Claims(console), AccountOfProfile(aws, folder), deployment, context=context)


def put_versions(s3: Any, bucket: str) -> None:
    """Put two versions of an object, a mark of deletion, and an upload that is not finished."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"1", b"2"):
        s3.put_object(Bucket=bucket, Key="k", Body=body)
    s3.delete_object(Bucket=bucket, Key="k")
    s3.create_multipart_upload(Bucket=bucket, Key="unfinished")


def test_a_profile_leads_to_its_own_account_with_its_own_key(aws: dict[str, str], account: Account) -> None:
    """Whatever the caller's own variables say; readers that know no profiles get its keys."""
    assert client_of(aws, "sts").get_caller_identity()["Account"] == ACCOUNT
    assert with_keys(aws)["AWS_SECRET_ACCESS_KEY"] == account.aws["AWS_SECRET_ACCESS_KEY"]
    assert environment(aws)["AWS_ENDPOINT_URL"] == account.endpoint


@pytest.mark.parametrize("destroyed", [False, True])
def test_all_that_a_run_has_made_is_removed_and_nothing_else(
    destroyed: bool,  # noqa: FBT001 - a row's field
    aws: dict[str, str],
    client: Callable[[str], Any],
    tmp_path: Path,
) -> None:
    """Also what the end of the stack has kept, which CloudFormation may not tell afterwards: it was noted before."""
    journey = new_journey(aws, tmp_path, f"soal-demo-{destroyed}")
    removal = Removal(journey, LONG_AGO)
    s3, logs, dynamodb, cloudformation = (client(name) for name in ("s3", "logs", "dynamodb", "cloudformation"))
    foreign = f"{journey.stack}-of-another".lower()
    s3.create_bucket(Bucket=foreign)
    put_versions(s3, foreign)

    def found() -> tuple[set[str], ...]:
        stacks = cloudformation.list_stacks()["StackSummaries"]
        return (
            {one["Name"] for one in s3.list_buckets()["Buckets"]},
            {one["logGroupName"] for one in logs.describe_log_groups()["logGroups"]},
            set(dynamodb.list_tables()["TableNames"]),
            {one["StackName"] for one in stacks if one["StackStatus"] != "DELETE_COMPLETE"},
        )

    before = found()
    cloudformation.create_stack(StackName=journey.stack, TemplateBody=json.dumps({"Resources": KEPT}))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=journey.stack, WaiterConfig=ONCE_A_SECOND)
    assert all(new - old for new, old in zip(found(), before, strict=True))
    s3.create_bucket(Bucket=journey.landing)
    put_versions(s3, journey.landing)
    if destroyed:
        removal.note()
        cloudformation.delete_stack(StackName=journey.stack)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=journey.stack, WaiterConfig=ONCE_A_SECOND)
        assert found() != before

    assert removal.remove() == []

    assert found() == before
    assert len(s3.list_object_versions(Bucket=foreign)["Versions"]) == 2


@pytest.mark.parametrize("pushed_before", [False, True])
def test_only_an_image_that_this_run_has_pushed_is_removed(
    pushed_before: bool,  # noqa: FBT001 - a row's field
    aws: dict[str, str],
    client: Callable[[str], Any],
    tmp_path: Path,
) -> None:
    """Another stack of the same tree has the same image."""
    journey = new_journey(aws, tmp_path, f"soal-demo-image-{pushed_before}")
    ecr, repository, tag = client("ecr"), f"assets-{str(pushed_before).lower()}", "0" * 64
    ecr.create_repository(repositoryName=repository)
    ecr.put_image(repositoryName=repository, imageTag=tag, imageManifest=json.dumps({"schemaVersion": 2}))
    place = {"repositoryName": repository, "imageTag": tag}
    (tmp_path / "cdk.out").mkdir()
    manifest = tmp_path / "cdk.out" / f"{journey.stack}.assets.json"
    manifest.write_text(json.dumps({"dockerImages": {tag: {"destinations": {"here": place}}}}), encoding="utf-8")
    begun = datetime.now(UTC) + timedelta(hours=1) if pushed_before else LONG_AGO

    assert Removal(journey, begun).remove() == []

    assert len(ecr.list_images(repositoryName=repository)["imageIds"]) == pushed_before


def test_what_cannot_be_removed_is_named_with_its_command(
    aws: dict[str, str], client: Callable[[str], Any], tmp_path: Path
) -> None:
    """And the rest is removed: a table that CloudFormation names, whose removal is denied."""
    journey = new_journey(aws, tmp_path, "soal-demo-denied")
    client("s3").create_bucket(Bucket=journey.landing)
    document = {"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteBucket", "Resource": "*"}]}
    text = json.dumps({"Version": "2012-10-17", **document})
    client("s3").put_bucket_policy(Bucket=journey.landing, Policy=text)

    (left,) = Removal(journey, LONG_AGO).remove()

    assert (left.what, "delete-bucket" in left.command) == (f"bucket {journey.landing}", True)
    assert left.command.endswith(f"--profile {NAME}")
    client("s3").delete_bucket_policy(Bucket=journey.landing)
    assert Removal(journey, LONG_AGO).remove() == []


def test_nothing_is_made_before_somebody_has_agreed(
    aws: dict[str, str], client: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line names the account, the region, the stack and the budget."""
    assert aws
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    console = Screen(file=io.StringIO(), width=200)
    before = client("cloudformation").list_stacks()["StackSummaries"]

    with pytest.raises(Problem, match="nobody has agreed"):
        playing.play_on_profile(console, Claims(console), NAME, None, agreed=False)

    first = console.file.getvalue().splitlines()[0]  # type: ignore[attr-defined]
    assert first.startswith(f"account {ACCOUNT}, {REGION}, stack soal-demo-")
    assert "budget: at most about 0." in first
    assert client("cloudformation").list_stacks()["StackSummaries"] == before


@pytest.mark.parametrize("how", [KeyboardInterrupt, Problem("broken", todo="", exit_code=1)])
def test_a_run_that_is_broken_off_removes_what_it_has_made(
    how: BaseException | type[BaseException], aws: dict[str, str], client: Callable[[str], Any]
) -> None:
    """By Ctrl-C or by an error; who has broken it off is told so."""
    assert aws
    console = Screen(file=io.StringIO(), width=200)
    buckets = client("s3").list_buckets()["Buckets"]

    def act(journey: Journey) -> None:
        client("s3").create_bucket(Bucket=journey.landing)
        raise how

    with pytest.raises((KeyboardInterrupt, Problem)):
        profile.play(console, Claims(console), NAME, None, [(0, act)], agreed=True)

    assert client("s3").list_buckets()["Buckets"] == buckets
