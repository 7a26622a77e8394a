"""One function, job after job in one JVM: none finds anything of the previous one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.integration.handler.reuse_scripts import ENDINGS, IN_PARTS, LEAVES, PROBE, STOPS
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

CHECKPOINTS, SCRIPTS = "checkpoints", "scripts"
SHORT = ("a thread of its own", "a process that goes on", "a secret of its own", "a secret in Hadoop's configuration")
"""Some that Java sees, and some that only the handler can see. The others run in the matrix."""
ARGUMENTS = "import json, sys; print('ARGUMENTS ' + json.dumps(sys.argv[1:]))"
TEXTS = {"probe": PROBE, "arguments": ARGUMENTS, "leaves": LEAVES, "stops": STOPS, "in parts": IN_PARTS, **ENDINGS}


class Function:
    def __init__(self, emulator: LambdaEmulator) -> None:
        self.emulator = emulator
        self.accumulators = 0

    def __call__(self, name: str, **event: object) -> Result:
        key = name.replace(" ", "-").replace("'", "")
        answer = self.emulator.invoke({"script": f"s3://{SCRIPTS}/{key}.py", "entryPointArguments": ["x"], **event})
        document = answer.payload if answer.error is None else json.loads(answer.error.message)
        return Result.model_validate(document)

    def probe(self, **event: object) -> tuple[dict[str, Any], int]:
        """Return a job's findings, and the process of its JVM."""
        result = self("probe", **event)
        assert result.state == "SUCCESS", result.state_details
        self.accumulators = _told(result, "COUNTED")
        return _told(result, "FOUND"), _told(result, "HELD")


def _told(result: Result, word: str) -> Any:
    return next(json.loads(line.split(" ", 1)[1]) for line in result.log_tail if line.startswith(f"{word} "))


@pytest.fixture(scope="module")
def function() -> Iterator[Function]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, "lake"]) as s3:
        for name, text in TEXTS.items():
            key = name.replace(" ", "-").replace("'", "")
            s3.observer().put_object(Bucket=SCRIPTS, Key=f"{key}.py", Body=text.encode())
        variables = {**s3.environment(), "SOAL_JIT": "c1", "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        with LambdaEmulator(variables, timeout_s=BUSY_S, memory_mb=1769) as emulator:
            yield Function(emulator)


def test_a_job_finds_nothing_of_the_one_before_in_its_machine(function: Function) -> None:
    """Settings, views, databases, cached data, streams, files, modules, workers, variables, and files on disk."""
    first, machine = function.probe()
    left = function("leaves")
    assert left.state == "SUCCESS", left.state_details
    assert _told(left, "HELD") == machine
    counted = function.accumulators
    assert function.probe() == (first, machine)
    assert function.accumulators <= counted


@pytest.mark.matrix
def test_a_script_may_stop_its_spark(function: Function) -> None:
    """It may also start another one; the JVM stays."""
    before, machine = function.probe()
    stopped = function("stops")
    assert stopped.state == "SUCCESS", stopped.state_details
    assert function.probe() == (before, machine)


def test_an_attempt_that_ends_by_its_own_step_leaves_its_machine_to_the_next_one(function: Function) -> None:
    """No part fits behind the first; the next attempt begins warm, and other jobs find nothing of them."""
    before, machine = function.probe()
    attempts = [
        function("in parts", clientToken="in-parts", entryPointArguments=["s3a://lake/parts"]) for _ in range(3)
    ]
    states = ["INCOMPLETE", "INCOMPLETE", "SUCCESS"]
    assert [(one.state, one.warm_start) for one in attempts] == [(state, True) for state in states]
    assert {_told(one, "HELD") for one in attempts} == {machine}
    assert function.probe() == (before, machine)


@pytest.mark.parametrize(
    "ending",
    [pytest.param(one, marks=() if one in SHORT else pytest.mark.matrix) for one in ENDINGS],
)
def test_a_machine_ends_with_a_job_that_does_not_end_well(function: Function, ending: str) -> None:
    """Or with one that leaves something, or had a secret; the next job gets a new JVM, and finds the same."""
    before, machine = function.probe()
    function(ending)
    after, other = function.probe()
    assert other != machine
    assert after == before


def test_other_settings_of_the_machine_end_it(function: Function) -> None:
    """The heap belongs to the JVM, SQL settings to a session."""
    _, machine = function.probe()
    assert function.probe(conf={"spark.sql.shuffle.partitions": "7"})[1] == machine
    _, larger = function.probe(conf={"spark.driver.memory": "900m"})
    assert larger != machine
    assert function.probe()[1] != larger


def test_empty_arguments_reach_a_script(function: Function) -> None:
    """At any position, as a shell passes them."""
    given = ["", "a", "", ""]
    assert _told(function("arguments", entryPointArguments=given), "ARGUMENTS") == given
