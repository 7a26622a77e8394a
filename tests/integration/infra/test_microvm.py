"""MicroVMs of the stack in an account that nobody here wrote, which starts none: the control plane, and its callers."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from handler.runs.store import result_key
from soal.console.problem import EXIT_FAILED, Problem
from tests.support.cloud import ACCOUNT, IMAGE, synthesise
from tests.support.command_line import app
from tests.support.waiting import until
from tests.unit.handler.outcome.test_result import result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scripts.account.server import Account
    from tests.support.cloud import Synthesised

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STACK, CHECKPOINTS = "microvms", "microvm-checkpoints"
EVENT = json.dumps({"entryPoint": "s3://scripts/job.py", "clientToken": "nightly"})


@pytest.fixture(scope="module")
def synthesised(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    context = {
        "image_uri": IMAGE,
        "architecture": "arm64",
        "lake_bucket": "true",
        "microvm_timeout_s": "14400",
        "open_write_alarm_minutes": "250",
    }
    return synthesise(context, tmp_path_factory.mktemp("cdk"))


def of_api(value: Any) -> Any:
    """Return CloudFormation's properties as the API writes them."""
    if isinstance(value, list):
        return [of_api(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {f"{key[0].lower()}{key[1:]}": of_api(each) for key, each in value.items()}


@pytest.fixture(scope="module")
def image(client: Callable[[str], Any], synthesised: Synthesised) -> str:
    """The ARN of an image that the API has taken with the template's own properties."""
    properties = of_api(synthesised.resolved(synthesised.the("Lambda::MicrovmImage")))
    properties["buildRoleArn"] = f"arn:aws:iam::{ACCOUNT}:role/build"
    properties["environmentVariables"] = {each["key"]: each["value"] for each in properties["environmentVariables"]}
    return str(client("lambda-microvms").create_microvm_image(**properties)["imageArn"])


@pytest.fixture(scope="module")
def stack(client: Callable[[str], Any], synthesised: Synthesised, image: str) -> Iterator[str]:
    """A stack with the template's output: the account's CloudFormation knows no MicroVM image."""
    launch = json.loads(synthesised.resolved(synthesised.template["Outputs"]["MicrovmLaunch"]["Value"]))
    launch |= {"imageIdentifier": image, "executionRoleArn": f"arn:aws:iam::{ACCOUNT}:role/job"}
    outputs = {"MicrovmLaunch": json.dumps(launch), "CheckpointBucket": CHECKPOINTS}
    template = {
        "Resources": {"Any": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    cloudformation = client("cloudformation")
    client("s3").create_bucket(Bucket=CHECKPOINTS)
    cloudformation.create_stack(StackName=STACK, TemplateBody=json.dumps(template))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
    yield STACK
    cloudformation.delete_stack(StackName=STACK)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})


@pytest.fixture(autouse=True)
def caller(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in account.aws.items():
        monkeypatch.setenv(name, value)


def command(account: Account, stack: str, *options: str) -> list[str]:
    return ["invoke", EVENT, "--microvm", stack, "--endpoint-url", account.endpoint, "--json", *options]


def at_the_start(client: Callable[[str], Any], do: Callable[[str], None]) -> threading.Thread:
    """Do something with the id of the next MicroVM, once it is there."""
    microvms = client("lambda-microvms")

    def ids() -> set[str]:
        return {each["microvmId"] for each in microvms.list_microvms()["items"]}

    before = ids()

    def wait() -> None:
        assert until(lambda: len(ids()) > len(before))
        (found,) = ids() - before
        do(found)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_microvm_is_started_as_the_stack_says(account: Account, client: Callable[[str], Any], stack: str) -> None:
    """Read back from Lambda: image, role, duration, closed ingress, and no policy that would suspend it."""
    done = CliRunner().invoke(app, command(account, stack, "--async"))
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    found = client("lambda-microvms").get_microvm(microvmIdentifier=answer["microvmId"])
    assert answer["runKey"] == "nightly"
    assert found["imageArn"].endswith("Soal")
    assert (found["executionRoleArn"].rpartition("/")[2], found["maximumDurationInSeconds"]) == ("job", 14400)
    assert [each.rpartition(":")[2] for each in found["ingressNetworkConnectors"]] == ["NO_INGRESS"]
    assert "idlePolicy" not in found


def test_the_command_waits_for_the_result(account: Account, client: Callable[[str], Any], stack: str) -> None:
    """It prints the document that the MicroVM's job would leave, and exits by its state."""
    document = result().document()

    def finish(microvm_id: str) -> None:
        client("s3").put_object(Bucket=CHECKPOINTS, Key=result_key(microvm_id), Body=json.dumps(document))

    thread = at_the_start(client, finish)
    done = CliRunner().invoke(app, command(account, stack))
    thread.join()
    assert (done.exit_code, json.loads(done.stdout)) == (0, document), done.output
    assert "started the MicroVM mvm-" in done.stderr


def test_a_microvm_that_ends_without_a_result_is_unknown(
    account: Account, client: Callable[[str], Any], stack: str
) -> None:
    """Somebody ends it; the problem names its log."""
    thread = at_the_start(
        client, lambda microvm_id: client("lambda-microvms").terminate_microvm(microvmIdentifier=microvm_id)
    )
    done = CliRunner().invoke(app, command(account, stack))
    thread.join()
    assert isinstance(done.exception, Problem)
    assert str(done.exception).startswith("unknown: the MicroVM mvm-")
    assert done.exception.exit_code == EXIT_FAILED
    assert "aws logs tail" in done.exception.todo
