"""The stack's sweeper function runs the job's image on a schedule, never beside itself, with few variables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.config import Config
from safewriter.settings import Settings

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def sweeper(stack: Synthesised) -> dict[str, Any]:
    return stack.the("Lambda::Function", "Sweeper")


def test_the_sweeper_is_the_same_image_under_another_command(plain: Synthesised, full: Synthesised) -> None:
    """Both functions always have one version and one architecture."""
    for stack in (plain, full):
        job = stack.the("Lambda::Function", "Runtime")
        assert sweeper(stack)["Code"] == job["Code"]
        assert sweeper(stack)["Architectures"] == job["Architectures"]
        assert sweeper(stack)["ImageConfig"] == {"Command": ["handler.functions.sweeper.lambda_handler"]}


def test_it_runs_on_a_schedule_and_never_beside_itself(plain: Synthesised) -> None:
    """A sweep ends, or is ended, before the next one begins; the next one handles its failures."""
    rule = plain.the("Events::Rule", "Sweeper")
    invoke = plain.the("Lambda::EventInvokeConfig", "Sweeper")

    assert rule["ScheduleExpression"] == "rate(15 minutes)"
    assert rule["State"] == "ENABLED"
    assert sweeper(plain)["Timeout"] <= Config().sweep_minutes * 60
    assert invoke["MaximumRetryAttempts"] == 0
    assert rule["Targets"][0]["RetryPolicy"] == {"MaximumRetryAttempts": 0}


@pytest.mark.parametrize("name", ["Sweeper", "Redrive"])
def test_a_schedule_that_is_not_delivered_is_kept_apart_from_failed_jobs(full: Synthesised, name: str) -> None:
    """A redrive of the failure queue would start a job with it."""
    (target,) = full.the("Events::Rule", name)["Targets"]

    assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0].startswith("Undelivered")


def test_only_the_schedule_may_invoke_it(plain: Synthesised) -> None:
    """The permission names the rule as the source."""
    (permission,) = plain.of_type("Lambda::Permission").values()
    (rule,) = plain.of_type("Events::Rule")

    assert permission["Principal"] == "events.amazonaws.com"
    assert permission["SourceArn"] == {"Fn::GetAtt": [rule, "Arn"]}


def test_its_environment_is_what_it_reads(plain: Synthesised) -> None:
    """The sweeper gets the checkpoint bucket, but neither scripts nor the job's own variables."""
    variables = plain.resolved(sweeper(plain)["Environment"]["Variables"])

    assert variables.keys() == {"SW_CHECKPOINT_BUCKET", "POWERTOOLS_SERVICE_NAME"}
    assert Settings.from_environment(variables).checkpoint_bucket.bucket.startswith("checkpoints")


def test_it_reaches_catalogs_as_the_job_does(full: Synthesised) -> None:
    """Of the job's own variables it gets only those for catalogs."""
    variables = sweeper(full)["Environment"]["Variables"]

    assert variables["PYICEBERG_CATALOG__LAKE__URI"] == "https://catalog.example.org"
    assert "TABLE" not in variables
    assert variables["SW_AUDIT_LOG"] == "false"
    assert json.loads(variables["SOAL_SECRETS"]).keys() == {"PGPASSWORD"}


def test_it_can_invoke_nothing(full: Synthesised) -> None:
    """The sweeper settles writes; it does not start runs."""
    assert not [each for each in full.access("SweeperSweepRole").statements if "lambda:" in str(each.actions)]
