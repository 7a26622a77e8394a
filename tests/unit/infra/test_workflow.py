"""The state machine runs a job document, goes on after an INCOMPLETE attempt, and ends as the run ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from handler.outcome.state import State
from infra.workflow import definition

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:f:live"
STATES: dict[str, Any] = definition(FUNCTION)["States"]


def test_nothing_makes_one_unless_asked_for(plain: Synthesised, full: Synthesised) -> None:
    """The full stack's machine invokes the alias, by a role that may do nothing else."""
    assert plain.of_type("StepFunctions::StateMachine") == {}
    machine = full.the("StepFunctions::StateMachine")
    alias = full.template["Outputs"]["InvokeArn"]["Value"]
    states = json.loads(full.resolved(machine["DefinitionString"]))["States"]
    assert states["Run"]["Parameters"]["FunctionName"] == full.resolved(alias)
    (statement,) = full.access("WorkflowRole").statements
    assert (statement.actions, statement.resources) == (("lambda:InvokeFunction",), (full.resolved(alias),))


def test_the_choice_knows_every_state_that_is_no_failure() -> None:
    """A run that the handler calls done is done; INCOMPLETE alone goes on at once."""
    done, again, later = STATES["Judge"]["Choices"]
    assert {one["StringEquals"] for one in done["Or"]} == {State.SUCCESS, State.SKIPPED}
    assert (again["StringEquals"], again["Next"]) == (State.INCOMPLETE, "Run")
    assert later["And"][0] == {"Not": {"Variable": "$.answer.result.state", "StringEquals": State.TIMED_OUT}}
    assert STATES["Judge"]["Default"] == "Failed"


def test_a_failed_run_is_read_from_the_function_s_error() -> None:
    """Lambda gives the class's name as the error, and the result as the text in it."""
    (caught,) = STATES["Run"]["Catch"]
    assert caught["ErrorEquals"] == ["JobFailed"]
    assert caught["Next"] == "ReadCause"


def test_a_run_that_was_not_stopped_is_tried_again_only_a_few_times() -> None:
    """Each state leads to another one or to an end, and what is repeated is counted."""
    assert STATES["Count"]["Parameters"]["tries.$"] == "States.MathAdd($.tries, 1)"
    assert {"Variable": "$.tries", "NumericLessThan": 5} in STATES["Judge"]["Choices"][2]["And"]
    targets = {state[key] for state in STATES.values() for key in ("Next", "Default") if key in state}
    assert targets <= STATES.keys()
