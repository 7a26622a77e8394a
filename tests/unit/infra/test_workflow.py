"""The state machine runs a job document, goes on after an INCOMPLETE attempt, and ends as the run ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic.alias_generators import to_camel

from handler.outcome.result import Result
from handler.outcome.state import State
from handler.request.job import requested
from handler.settings import read_settings
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


def holds(rule: dict[str, Any], data: Any) -> bool:
    """Judge a rule of a choice as Amazon's States Language says."""
    if "And" in rule or "Or" in rule:
        return (all if "And" in rule else any)(holds(one, data) for one in rule.get("And") or rule["Or"])
    if "Not" in rule:
        return not holds(rule["Not"], data)
    for name in rule["Variable"].split(".")[1:]:
        if rule.get("IsPresent") is not None and name not in data:
            return not rule["IsPresent"]
        data = data[name]  # a choice that asks for what is missing ends the execution
    if "IsPresent" in rule:
        return bool(rule["IsPresent"])
    if "NumericLessThan" in rule:
        return bool(data < rule["NumericLessThan"])
    return bool(data == rule.get("StringEquals", rule.get("BooleanEquals")))


def after(state: State, *, retryable: bool = True, progressed: bool | None = False, tries: int = 0) -> str:
    result = {"state": state, "error": {"retryable": retryable}}
    told = {} if progressed is None else {"progressed": progressed}
    data = {"answer": {"result": {**result, **told}}, "tries": tries}
    judge = STATES["Judge"]
    return next((str(one["Next"]) for one in judge["Choices"] if holds(one, data)), str(judge["Default"]))


def test_each_run_goes_on_or_ends_as_its_state_says() -> None:
    """A run that the handler calls done is done, and a timeout is final."""
    assert {state for state in State if after(state, retryable=False) == "Done"} == {State.SUCCESS, State.SKIPPED}
    assert after(State.FAILED) == "Count"
    assert after(State.FAILED, retryable=False) == after(State.TIMED_OUT) == "Failed"


def test_an_incomplete_run_goes_on_at_once_only_if_it_has_committed_something() -> None:
    """An attempt that never reaches its next commit would be repeated for a day."""
    assert after(State.INCOMPLETE, progressed=True, tries=5) == "Again"
    assert [after(State.INCOMPLETE, tries=tries) for tries in (0, 4, 5)] == ["Count", "Count", "Failed"]


def test_an_incomplete_run_of_an_older_image_is_not_repeated() -> None:
    """Its answer does not tell whether it has committed something. Other states need no word of that."""
    assert {after(State.INCOMPLETE, progressed=None, retryable=retryable) for retryable in (True, False)} == {"Unknown"}
    assert "older than this state machine" in STATES["Unknown"]["Cause"]
    others = [state for state in State if state is not State.INCOMPLETE]
    assert [after(state, progressed=None) for state in others] == [after(state) for state in others]


def test_what_a_machine_keeps_of_an_answer_is_small() -> None:
    """An answer has each of its writes; a state holds 256 KiB. What the choice asks for is kept, but not
    `progressed`: an older image's answer lacks it, and a path to it would end the execution of a run that succeeded.
    """
    kept = STATES["Run"]["ResultSelector"]["result"]
    assert kept.keys() == {f"{name}.$" for name in ("runId", "attempt", "state", "stateDetails", "error", "resultUri")}
    assert {name.removesuffix(".$") for name in kept} <= {to_camel(name) for name in Result.model_fields}
    assert STATES["Again"]["Parameters"].keys() == {"event.$", "tries.$"}


def test_the_longest_name_of_an_execution_is_a_run_key() -> None:
    """Step Functions takes names of 80 letters; the machine gives its execution's name as the job's clientToken."""
    event = {"entryPoint": "s3://scripts/job.py", "clientToken": "n" * 80}
    settings = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
    assert requested(event, settings, "r").job.run_key == "n" * 80


def test_a_failed_run_is_read_from_the_function_s_error() -> None:
    """Lambda gives the class's name as the error, and the result as the text in it."""
    (caught,) = STATES["Run"]["Catch"]
    assert caught["ErrorEquals"] == ["JobFailed"]
    assert caught["Next"] == "ReadCause"


def test_a_run_that_was_not_stopped_is_tried_again_only_a_few_times() -> None:
    """Each state leads to another one or to an end, and what is repeated is counted."""
    assert STATES["Count"]["Parameters"]["tries.$"] == "States.MathAdd($.tries, 1)"
    assert {"Variable": "$.tries", "NumericLessThan": 5} in STATES["Judge"]["Choices"][3]["And"]
    targets = {state[key] for state in STATES.values() for key in ("Next", "Default") if key in state}
    assert targets <= STATES.keys()
