"""The whole synthesised template passes cdk-nag and cfn-lint, matches the kept one, and retains data and logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

SNAPSHOT = Path(__file__).with_name("snapshot.json")
# The accepted findings of cdk-nag, each with its reason: cdk-nag must still report each, and no others.
BELOW = r"\[Resource::<Checkpoints\w+\.Arn>/"
DATA = r"\[Resource::(<Lake\w+\.Arn>|arn:<AWS::Partition>:s3:::(my-lake/tables|warehouse))/"
KEPT = {
    rf"Runtime/Job/.*{BELOW}(checkpoints|open|leases|notes|audit|runs|results|eventlogs|cancels|locks)/\*\]": (
        "keys of a folder are made of digests; test_checkpoints.py has a test for each folder and action"
    ),
    rf"Sweeper/.*{BELOW}(checkpoints|open|leases|notes|audit)/\*\]": "as the job's",
    r"Runtime/Job/.*\[Resource::arn:<AWS::Partition>:s3:::my-scripts/spark/\*\]": "the event names the script",
    rf"Runtime/Job/.*{DATA}\*\]": "tables are made below the place that the owner has named for them",
    rf"Sweeper/.*{DATA}(\*|(\*/)?(_delta_log|metadata)/\*|\*/_CURRENT|\*(runs|manifests)/\*_run_id=\*/[a-z.]+)\]": (
        "as the job's"
    ),
    r"Runtime/Job/.*\[Resource::arn:<AWS::Partition>:s3:::raw/(in|archive)/\*\]": "read-only data, named by the owner",
    r"(Runtime/Job|Sweeper)/.*\[Resource::arn:<AWS::Partition>:glue:.*:table/sales/\*\]": (
        "tables of a database that is named"
    ),
    r"(Runtime/Job|Sweeper|Redrive)/.*\[Resource::\*\]": (
        "to look at networks and to send traces: by AWS's reference actions without a resource; test_reference.py"
    ),
    r"(Runtime/Job|Sweeper)/.*:ec2:<AWS::Region>:<AWS::AccountId>:network-interface/\*\]": (
        "Lambda makes and removes them in the role's name; the function's code is denied to"
    ),
    r"(Runtime/Job|Sweeper)/.*\[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>:\*:(subnet|security-group)/": (
        "named by their ids; an existing network may be shared by another account"
    ),
    r"Deployment/.*\[Resource::arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>:alarm:\*\]": (
        "to see alarms, which CodeDeploy asks for"
    ),
}


def test_cdk_nag_finds_nothing_but_what_has_a_reason(full: Synthesised) -> None:
    """The only finding of the AwsSolutions and Serverless rules is the one about wildcards, below named places."""
    unexpected = [
        f"{each.construct} {each.rule}"
        for each in full.violations
        if not each.rule.startswith("AwsSolutions-IAM5[")
        or not any(re.search(pattern, f"{each.construct} {each.rule}") for pattern in KEPT)
    ]

    assert unexpected == []


@pytest.mark.parametrize("pattern", KEPT)
def test_what_is_kept_is_still_found(full: Synthesised, pattern: str) -> None:
    """A reason without a finding must be removed."""
    assert any(re.search(pattern, f"{each.construct} {each.rule}") for each in full.violations)


@pytest.mark.slow
def test_cloudformation_would_take_the_template(full: Synthesised) -> None:
    """cfn-lint, which has CloudFormation's schemas of all resources, finds no error."""
    # The CDK declares twice that a function depends on its role.
    settings = ManualArgs(regions=["us-east-1", "eu-west-1"], ignore_checks=["W3005"])

    assert [str(each) for each in lint(full.path.read_text(), config=settings)] == []


def test_the_template_is_the_one_that_was_looked_at(plain: Synthesised, tmp_path: Path) -> None:
    """A review shows every changed resource, since the template of the plain stack is kept."""
    fresh = tmp_path / "snapshot.json"
    fresh.write_text(json.dumps(plain.template, indent=1, sort_keys=True) + "\n")

    assert json.loads(SNAPSHOT.read_text()) == plain.template, f"if that is meant: cp {fresh} {SNAPSHOT}"


def test_outputs_say_what_one_needs_next(plain: Synthesised, full: Synthesised) -> None:
    """They name the function to invoke and the places of scripts, results, logs and failures."""
    always = {
        *("FunctionName", "FunctionArn", "InvokeArn", "SweeperName", "CheckpointBucket", "ScriptBucket"),
        *("LogGroup", "FailureQueueUrl", "UndeliveredQueueUrl", "AlarmTopicArn", "DashboardName"),
    }

    assert plain.template["Outputs"].keys() == always
    assert full.template["Outputs"].keys() == always | {
        *("LakeBucket", "LockTable", "JobQueueArn", "JobQueueUrl", "ParkedQueueUrl"),
        *("RedriveName", "StateMachineArn"),
    }
    (alias,) = plain.of_type("Lambda::Alias")
    assert plain.template["Outputs"]["InvokeArn"]["Value"] == {"Ref": alias}


def test_what_holds_data_is_kept_when_the_stack_goes(full: Synthesised) -> None:
    """Buckets, their key and the locks are retained; everything else except logs is deleted with the stack."""
    kept = {
        resource["Type"]
        for resource in full.template["Resources"].values()
        if resource.get("DeletionPolicy") == "Retain"
    }

    assert kept == {"AWS::S3::Bucket", "AWS::KMS::Key", "AWS::DynamoDB::Table", "AWS::Lambda::Version"}


def test_logs_outlive_the_stack_and_are_in_no_later_one_s_way(full: Synthesised) -> None:
    """The logs say what happened to data that is kept. CloudFormation names them, so that a new stack creates others; a
    failed deployment deletes its own.
    """
    groups = [each for each in full.template["Resources"].values() if each["Type"] == "AWS::Logs::LogGroup"]

    assert len(groups) == 3
    for group in groups:
        assert (group["DeletionPolicy"], group["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
        assert "LogGroupName" not in group["Properties"]
        assert group["Properties"]["RetentionInDays"] == 30
