"""The MicroVM image: https://docs.aws.amazon.com/lambda/latest/dg/microvms-images.html."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from handler.microvm.lifecycle import _END_WAIT_S
from infra.context import read_context
from infra.contradictions import ConfigError
from safewriter.schedule import LEAD_MS
from scripts.image.microvm import bundle
from scripts.provision.place import ROOT
from tests.support.cloud import ACCOUNT, IMAGE

if TYPE_CHECKING:
    from botocore.model import StructureShape

    from tests.support.cloud import Synthesised

MICROVM = {
    "image_uri": IMAGE,
    "architecture": "arm64",
    "microvm_timeout_s": "14400",
    "open_write_alarm_minutes": "250",
}


def image(stack: Synthesised) -> dict[str, Any]:
    return dict(stack.resolved(stack.the("Lambda::MicrovmImage")))


def launch(stack: Synthesised) -> dict[str, Any]:
    return dict(json.loads(stack.resolved(stack.template["Outputs"]["MicrovmLaunch"]["Value"])))


def model() -> StructureShape:
    """Return the parameters of RunMicrovm."""
    shape = Session().get_service_model("lambda-microvms").operation_model("RunMicrovm").input_shape
    assert shape is not None
    return shape


def test_lambda_builds_it_on_top_of_the_functions_image(microvm: Synthesised) -> None:
    """The asset is the zip file whose Dockerfile names that image; nobody but the build reads it."""
    uri = image(microvm)["CodeArtifact"]["Uri"]
    (path,) = microvm.path.parent.glob("asset.*.zip")
    assert uri.endswith(f"/{path.stem.removeprefix('asset.')}.zip")
    assert path.read_bytes() == bundle(IMAGE)
    assert f"ARG IMAGE={IMAGE}\n" in zipfile.ZipFile(io.BytesIO(path.read_bytes())).read("Dockerfile").decode()


def test_the_variables_are_the_functions_with_a_microvms_time_and_memory(microvm: Synthesised) -> None:
    """All others are equal, so a job finds the same settings in either."""
    own = {each["Key"]: each["Value"] for each in image(microvm)["EnvironmentVariables"]}
    of_function = microvm.resolved(microvm.the("Lambda::Function", "Runtime")["Environment"]["Variables"])
    assert (own.pop("SOAL_TIMEOUT_S"), own.pop("SOAL_MEMORY_MB")) == ("14400", "4096")
    del of_function["SOAL_TIMEOUT_S"]
    assert own == of_function
    assert image(microvm)["Resources"] == [{"MinimumMemoryInMiB": 4096}]


def test_the_hooks_are_those_that_the_program_serves(microvm: Synthesised) -> None:
    """Each has a time limit: Lambda's own is a second."""
    hooks = image(microvm)["Hooks"]
    assert hooks["Port"] == 9000
    named = {**hooks["MicrovmHooks"], **hooks["MicrovmImageHooks"]}
    enabled = {name for name, value in named.items() if value == "ENABLED"}
    assert enabled == {"Ready", "Validate", "Run", "Suspend", "Resume", "Terminate"}
    assert {f"{name}TimeoutInSeconds" for name in enabled} == named.keys() - enabled
    # The program waits for the job's settled end, and answers within the hook's time.
    assert LEAD_MS / 1000 < _END_WAIT_S < hooks["MicrovmHooks"]["TerminateTimeoutInSeconds"]


def test_the_guide_s_command_makes_an_image_with_the_hooks_of_the_template(microvm: Synthesised) -> None:
    """The command line begins its names with a small letter."""
    guide = (ROOT / "docs" / "guides" / "microvm.md").read_text(encoding="utf-8")
    (by_hand,) = re.findall(r"--hooks '(.+?)'", guide, re.DOTALL)
    hooks = json.loads(by_hand)
    named = {**hooks, **{group: _capital(hooks[group]) for group in ("microvmImageHooks", "microvmHooks")}}
    assert _capital(named) == image(microvm)["Hooks"]


def _capital(names: dict[str, Any]) -> dict[str, Any]:
    return {f"{name[0].upper()}{name[1:]}": value for name, value in names.items()}


def test_its_jobs_may_do_what_the_functions_may(microvm: Synthesised) -> None:
    """Not what Lambda does in the function's name: to send its failures away. And a MicroVM ends itself."""
    job, function = microvm.access("MicrovmJobRole"), microvm.access("RuntimeJobRole")
    others = ("s3:", "dynamodb:", "glue:", "secretsmanager:")
    rights = [each for each in function.statements if each.effect == "Allow" and each.actions[0].startswith(others)]
    assert len(rights) > 10
    assert [each for each in rights if each not in job.statements] == []
    assert not any(action.startswith(("sqs:", "xray:")) for each in job.statements for action in each.actions)
    (end,) = (each for each in job.statements if each.sid == "EndMicrovm")
    assert (end.actions, end.resources) == (("lambda:TerminateMicrovm",), (launch(microvm)["imageIdentifier"],))


def test_the_build_reads_its_zip_file_and_the_image_alone(microvm: Synthesised) -> None:
    """No rights on buckets of the stack: the warm-up has an S3 of its own."""
    build = microvm.access("MicrovmBuildRole")
    found = {action: each.resources for each in build.statements for action in each.actions}
    repository = f"arn:aws:ecr:us-east-1:{ACCOUNT}:repository/soal"
    assert found["ecr:BatchGetImage"] == found["ecr:GetDownloadUrlForLayer"] == (repository,)
    assert found["ecr:GetAuthorizationToken"] == ("*",)
    assert [action for action in found if action.startswith("s3:")] == ["s3:GetObject"]
    (zipped,) = found["s3:GetObject"]
    assert "-assets-" in zipped
    assert "*" not in zipped


@pytest.mark.parametrize("role", ["MicrovmBuildRole", "MicrovmJobRole"])
def test_lambda_may_tag_its_sessions(microvm: Synthesised, role: str) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/microvms-security.html: both roles trust it to."""
    statements = microvm.the("IAM::Role", role)["AssumeRolePolicyDocument"]["Statement"]
    assert [each["Action"] for each in statements] == ["sts:AssumeRole", "sts:TagSession"]
    assert {each["Principal"]["Service"] for each in statements} == {"lambda.amazonaws.com"}


def test_the_output_is_what_run_microvm_takes(microvm: Synthesised) -> None:
    """By botocore's model: all but the payload; nobody reaches the hooks' port; nothing suspends a job."""
    asked = launch(microvm)
    parameters = model()
    whole = {**asked, "imageIdentifier": "i", "executionRoleArn": f"arn:aws:iam::{ACCOUNT}:role/r"}
    assert not ParamValidator().validate(whole, parameters).has_errors()
    assert [name.rpartition(":")[2] for name in asked["ingressNetworkConnectors"]] == ["NO_INGRESS"]
    assert "idlePolicy" not in asked
    assert asked["maximumDurationInSeconds"] == 14400
    assert asked["logging"]["cloudWatch"]["logGroup"] != image(microvm)["Logging"]["CloudWatch"]["LogGroup"]


def test_cdk_nag_finds_what_it_finds_at_the_function(microvm: Synthesised) -> None:
    """tests/unit/infra/test_stack.py has the reasons; and the log-in to ECR, an action without a resource."""

    def found(part: str) -> set[str]:
        return {each.rule for each in microvm.violations if each.construct.startswith(f"Nightly/{part}/")}

    assert found("Microvm/Job") < found("Runtime/Job")
    assert found("Microvm/Build") == {"AwsSolutions-IAM5[Resource::*]"}
    assert found("Microvm") == found("Microvm/Job") | found("Microvm/Build")


def test_a_stack_without_the_key_has_none_of_it(full: Synthesised, microvm: Synthesised) -> None:
    """Neither image, roles nor output."""
    assert "Lambda::MicrovmImage" not in "".join(full.types())
    assert "MicrovmLaunch" not in full.template["Outputs"]
    assert "soal:microvm" in microvm.warnings


@pytest.mark.slow
def test_cloudformation_knows_the_template(microvm: Synthesised) -> None:
    """By the services' own schemas."""
    args = ManualArgs(regions=["us-east-1"], ignore_checks=["I", "W"])
    assert [match.message for match in lint(microvm.path.read_text(), config=args)] == []


@pytest.mark.parametrize(
    ("context", "key", "remedy"),
    [
        ({**MICROVM, "image_uri": ""}, "microvm_timeout_s", "set image_uri"),
        ({**MICROVM, "architecture": "x86_64"}, "architecture", "for arm64 only"),
        ({**MICROVM, "reuse": "off"}, "reuse", "leave it out"),
        ({**MICROVM, "network": "own"}, "network", "which the stack does not make"),
        ({**MICROVM, "stack_name": "S" * 65}, "stack_name", "64 at most"),
        ({**MICROVM, "open_write_alarm_minutes": "240"}, "open_write_alarm_minutes", "a run that is alive"),
        ({**MICROVM, "microvm_timeout_s": "28801"}, "microvm_timeout_s", "less than or equal to 28800"),
        ({**MICROVM, "microvm_memory_mb": "3008"}, "microvm_memory_mb", "2048, 4096 or 8192"),
        ({**MICROVM, "microvm_base_version": "latest"}, "microvm_base_version", "match"),
        ({**MICROVM, "environment": json.dumps({f"A{n}": "b" for n in range(47)})}, "environment", "50 at most"),
    ],
)
def test_what_could_not_be_deployed_is_refused(context: dict[str, object], key: str, remedy: str) -> None:
    """The error names the key, and the value to write instead."""
    with pytest.raises(ConfigError) as caught:
        read_context(context)

    assert caught.value.key == key
    assert remedy in caught.value.remedy


def test_what_a_microvms_jobs_would_refuse_is_refused() -> None:
    """The handler's own check, with the MicroVM's memory: the function's may be larger."""
    context = {**MICROVM, "memory_mb": "10240", "conf": '{"spark.driver.memory": "6g"}'}
    assert read_context({**context, "microvm_memory_mb": "8192"}).microvm_memory_mb == 8192
    with pytest.raises(ConfigError) as caught:
        read_context(context)

    assert caught.value.key == "conf"
    assert "4096 MB" in caught.value.remedy


def test_a_microvm_may_run_as_long_as_lambda_lets_it() -> None:
    """By botocore's model of RunMicrovm."""
    most_s = model().members["maximumDurationInSeconds"].metadata["max"]
    config = read_context({**MICROVM, "microvm_timeout_s": most_s, "open_write_alarm_minutes": "481"})
    assert config.microvm_timeout_s == most_s
