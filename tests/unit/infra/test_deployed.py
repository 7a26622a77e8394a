"""The template, deployed to an emulated CloudFormation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.deployed import UNKNOWN, Deployed, deploy

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def deployed(plain: Synthesised) -> Deployed:
    return deploy(plain.template)


def test_every_resource_is_made_that_the_emulator_knows(plain: Synthesised, deployed: Deployed) -> None:
    """The emulator creates every resource of the template except the types listed as unknown."""
    wanted = Counter(plain.types())

    assert deployed.status == "CREATE_COMPLETE"
    assert deployed.resources == Counter({kind: number for kind, number in wanted.items() if kind not in UNKNOWN})
    assert wanted.keys() >= UNKNOWN


def test_outputs_name_what_was_made(deployed: Deployed) -> None:
    """The outputs name function, sweeper, buckets, log group and queue."""
    outputs = deployed.outputs

    assert {outputs["FunctionName"], outputs["SweeperName"]} == deployed.functions.keys()
    assert {outputs["CheckpointBucket"], outputs["ScriptBucket"]} == deployed.buckets
    assert outputs["LogGroup"] in deployed.retention_days
    assert set(deployed.retention_days.values()) == {30}
    assert outputs["FailureQueueUrl"] in deployed.queues
    assert deployed.queues[outputs["FailureQueueUrl"]]["MessageRetentionPeriod"] == "1209600"
    assert list(deployed.rules.values()) == ["rate(15 minutes)"]


def test_each_function_has_its_own_role_and_knows_the_checkpoint_bucket(deployed: Deployed) -> None:
    """Once CloudFormation has inserted the names, the job cannot list checkpoints, and the sweeper can."""
    outputs, functions = deployed.outputs, deployed.functions
    job, sweeper = functions[outputs["FunctionName"]], functions[outputs["SweeperName"]]
    checkpoints = f"arn:aws:s3:::{outputs['CheckpointBucket']}"

    assert (job["MemorySize"], job["Timeout"]) == (3008, 900)
    for function in (job, sweeper):
        assert function["Environment"]["Variables"]["SW_CHECKPOINT_BUCKET"] == outputs["CheckpointBucket"]
    assert {job["Role"], sweeper["Role"]} == deployed.access.keys()
    assert deployed.access[job["Role"]].may("s3:PutObject", f"{checkpoints}/checkpoints/x.json")
    assert not deployed.access[job["Role"]].may("s3:ListBucket", checkpoints, s3_prefix="open/")
    assert deployed.access[sweeper["Role"]].may("s3:ListBucket", checkpoints, s3_prefix="open/")
