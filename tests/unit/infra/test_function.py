"""The stack's job function: size, variables, alias, ready sandboxes, destination of failures, self-invocation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handler.settings import read_settings
from handler.variables import VARIABLES, Reader
from infra.context import read_context
from infra.environment import Resources, job_environment, size_bytes, sweeper_environment
from safewriter.objects import Location
from tests.support.cloud import IMAGE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cloud import Synthesised

JOBS_OWN = {"TABLE", "PYICEBERG_CATALOG__LAKE__URI"}


def function(stack: Synthesised) -> dict[str, Any]:
    return stack.the("Lambda::Function", "Runtime")


def variables(stack: Synthesised) -> dict[str, str]:
    found: dict[str, str] = stack.resolved(function(stack)["Environment"]["Variables"])
    return found


def test_the_function_is_as_its_settings_say(plain: Synthesised, full: Synthesised) -> None:
    """The context sets image, command, architecture, memory, disk, timeout and concurrency."""
    properties = function(plain)

    assert properties["PackageType"] == "Image"
    assert plain.resolved(properties["Code"]["ImageUri"]).endswith(IMAGE.rpartition("/")[2])
    assert properties["ImageConfig"] == {"Command": ["handler.app.lambda_handler"]}
    assert (properties["MemorySize"], properties["Timeout"]) == (3008, 900)
    assert properties["EphemeralStorage"] == {"Size": 2048}
    assert properties["Architectures"] == ["x86_64"]
    assert properties["LoggingConfig"]["LogFormat"] == "JSON"
    assert "ReservedConcurrentExecutions" not in properties
    assert "TracingConfig" not in properties
    asked_for = function(full)
    assert (asked_for["Timeout"], asked_for["ReservedConcurrentExecutions"]) == (600, 5)
    assert asked_for["Architectures"] == ["arm64"]
    assert asked_for["TracingConfig"] == {"Mode": "Active"}


def test_the_environment_is_what_the_handler_reads(
    plain: Synthesised, full: Synthesised, continuing: Synthesised, full_context: dict[str, str], tmp_path: Path
) -> None:
    """The handler accepts the variables, and every variable has a reader."""
    (tmp_path / "jars").mkdir()
    known = {variable.name for variable in VARIABLES if Reader.JOB in variable.readers}
    for stack in (plain, full, continuing):
        assert variables(stack).keys() - JOBS_OWN <= known

    least = read_settings({**variables(plain), "SOAL_HOME": str(tmp_path)})
    settings = read_settings({**variables(full), "SOAL_HOME": str(tmp_path)})

    assert least.guard.checkpoint_bucket.bucket.startswith("checkpoints")
    assert (least.continue_max, least.script) == (0, None)
    assert read_settings({**variables(continuing), "SOAL_HOME": str(tmp_path)}).continue_max == 20
    assert settings.guard.warn_before_ms == 20_000
    assert (settings.jit, settings.guard.audit_log) == ("full", False)
    assert {name: str(reference) for name, reference in settings.secrets.items()} == json.loads(full_context["secrets"])
    assert variables(full)["SOAL_CONF_ALLOW"] == full_context["conf_allow"]
    assert json.loads(variables(full)["SOAL_CONF"]) == json.loads(full_context["conf"])
    assert len(settings.turns_of(Location("my-scripts", "spark/jobs/ingestion.py"))) == 1
    assert str(settings.script) == "s3://my-scripts/spark/jobs/nightly.py"
    assert variables(full)["TABLE"] == "s3a://my-lake/tables/t"


def test_the_size_that_is_checked_is_that_of_the_template(full: Synthesised, full_context: dict[str, str]) -> None:
    """No variable is added after the check: with every option, the measured size is at least the template's."""
    config = read_context(full_context)
    made = Resources.longest(config)
    for name, checked in (("Runtime", job_environment(config, made)), ("Sweeper", sweeper_environment(config, made))):
        found = full.resolved(full.the("Lambda::Function", name)["Environment"]["Variables"])
        assert found.keys() == checked.keys()
        assert size_bytes(found) <= size_bytes(checked)


def test_a_log_level_does_not_cost_the_metrics(full: Synthesised) -> None:
    """Lambda's own level filter stays open: it would drop metrics, which are lines without a level."""
    assert "ApplicationLogLevel" not in function(full)["LoggingConfig"]


@pytest.mark.parametrize(("name", "retries"), [("plain", 0), ("full", 1)])
def test_what_fails_goes_to_the_failure_queue_on_every_way_in(
    request: pytest.FixtureRequest, name: str, retries: int
) -> None:
    """The alias, through which people invoke, and the bare function treat an event alike."""
    stack: Synthesised = request.getfixturevalue(name)
    found = [each for key, each in stack.of_type("Lambda::EventInvokeConfig").items() if key.startswith("Runtime")]
    (queue,) = (key for key in stack.of_type("SQS::Queue") if key.startswith("Failures"))

    assert sorted(str(each["Qualifier"]) == "$LATEST" for each in found) == [False, True]
    for each in found:
        assert each["MaximumRetryAttempts"] == retries
        assert each["MaximumEventAgeInSeconds"] == 21_600
        assert each["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": [queue, "Arn"]}}}


def test_the_function_may_send_to_the_failure_queue_but_not_read_it(plain: Synthesised) -> None:
    """A failure stays until a person takes it."""
    (queue,) = (name for name in plain.of_type("SQS::Queue") if name.startswith("Failures"))
    arn = f"arn:aws:sqs:us-east-1:123456789012:{queue.lower()}"

    assert plain.access("RuntimeJobRole").may("sqs:SendMessage", arn)
    assert not plain.access("RuntimeJobRole").may("sqs:ReceiveMessage", arn)
    assert not plain.access("RuntimeJobRole").may("sqs:DeleteMessage", arn)


def test_the_function_invokes_itself_only_if_runs_may_go_on(plain: Synthesised, continuing: Synthesised) -> None:
    """With continue_max it may invoke itself and its alias, nothing else."""
    ((name, _),) = (
        (key, each) for key, each in continuing.of_type("Lambda::Function").items() if key.startswith("Runtime")
    )
    own = f"arn:aws:lambda:us-east-1:123456789012:function:{name.lower()}"
    access = continuing.access("RuntimeJobRole")

    assert access.may("lambda:InvokeFunction", own)
    assert access.may("lambda:InvokeFunction", f"{own}:live")
    assert not access.may("lambda:InvokeFunction", f"{own}:other")
    assert not access.may("lambda:InvokeFunction", own.replace("runtime", "sweeper"))
    assert not plain.access("RuntimeJobRole").may("lambda:InvokeFunction", own)


def test_lambda_does_not_take_a_long_run_for_a_loop(plain: Synthesised, continuing: Synthesised) -> None:
    """Lambda's detection ends a chain of about 16 invocations; it is off only if runs may continue that often."""
    assert function(continuing)["RecursiveLoop"] == "Allow"
    assert "RecursiveLoop" not in function(plain)


def test_sandboxes_are_kept_ready_for_the_alias_only(plain: Synthesised, full: Synthesised) -> None:
    """The alias gets them on request; on a version that the alias leaves they would be paid for and unused."""
    assert "ProvisionedConcurrencyConfig" not in plain.the("Lambda::Alias")
    assert full.the("Lambda::Alias")["ProvisionedConcurrencyConfig"] == {"ProvisionedConcurrentExecutions": 2}
    assert "ProvisionedConcurrencyConfig" not in full.the("Lambda::Version")


def test_whatever_invokes_the_function_names_the_alias(full: Synthesised) -> None:
    """Triggers, their permissions and the redrive use the alias: only there a run finds a ready sandbox."""
    (alias,) = full.of_type("Lambda::Alias")
    (function,) = (name for name in full.of_type("Lambda::Function") if name.startswith("Runtime"))
    rules = [rule["Targets"] for rule in full.of_type("Events::Rule").values()]
    redrive = full.the("Lambda::Function", "Redrive")["Environment"]["Variables"]
    invoking = [
        *(each["FunctionName"] for each in full.of_type("Lambda::EventSourceMapping").values()),
        *(each["FunctionName"] for each in full.of_type("Lambda::Permission").values()),
        *(target["Arn"] for targets in rules for target in targets),
        redrive["SOAL_REDRIVE_FUNCTION"],
    ]
    assert {"Ref": alias} in invoking
    assert function not in json.dumps(invoking)
    assert redrive["SOAL_REDRIVE_FUNCTION"] == {"Ref": alias}


def test_the_alias_leads_to_a_version(plain: Synthesised) -> None:
    """A deployment creates a version, which stays when the next one is created, so that a rollback is possible."""
    alias = plain.the("Lambda::Alias")
    (version,) = (key for key in plain.of_type("Lambda::Version"))

    assert alias["Name"] == "live"
    assert alias["FunctionVersion"] == {"Fn::GetAtt": [version, "Version"]}
    assert plain.template["Resources"][version]["DeletionPolicy"] == "Retain"
