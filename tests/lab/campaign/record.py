"""The results of the campaign as lines of JSON; each holds enough to replay its case or state.

`python -m tests.lab.campaign.record` prints the schemas of the lines.
"""

from __future__ import annotations

import json
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CASES",
    "MUTANTS",
    "SCENARIO_RESULTS",
    "SCHEDULES",
    "SCHEMAS",
    "SCRIPT_RESULTS",
    "STATES",
    "VIOLATIONS",
    "CaseRecord",
    "MutantRecord",
    "ScenarioRecord",
    "ScheduleBlock",
    "ScheduleRecord",
    "ScriptAttempt",
    "ScriptRecord",
    "StateRecord",
    "Violation",
]

CASES: Final = "cases.jsonl"
STATES: Final = "states.jsonl"
SCENARIO_RESULTS: Final = "scenarios.jsonl"
SCRIPT_RESULTS: Final = "scripts.jsonl"
SCHEDULES: Final = "schedules.jsonl"
MUTANTS: Final = "mutants.jsonl"

Violation = Literal[
    "lost",
    "unacknowledged",
    "doubled",
    "gap",
    "wrong_verdict",
    "unknown",
    "changed",
    "orphans",
    "retry_failed",
    "order",
    "refused",
    "other_rows",
    "scenario",
    "harness_error",
]
VIOLATIONS: Final[dict[Violation, str]] = {
    "lost": "acknowledged, and the rows are not there",
    "unacknowledged": "not acknowledged, not known as committed, and the rows are there",
    "doubled": "after the retry rows are there twice",
    "gap": "after the retry, or behind an error, a part of the rows is missing",
    "wrong_verdict": "the document says something else than the table",
    "unknown": "the document has no verdict after recovery",
    "changed": "something late has changed the table behind the verdict",
    "orphans": "data files are left that no version names",
    "retry_failed": "the retry ended with an error",
    "order": "no order of the calls explains what callers and readers saw",
    "refused": "a script that is right ended with an error",
    "other_rows": "acknowledged, and another table of the script holds other rows than it has written there",
    "scenario": "its test failed",
    "harness_error": "the case could not be carried out",
}


class CaseRecord(BaseModel):
    """One fault, and everything after it."""

    model_config = ConfigDict(extra="forbid", title="A line of the results of `scripts/lab faults run`")

    case: str = Field(description="Its name: `scripts/lab faults replay` takes it.")
    hit: bool = Field(description="Whether there was such a request; a sequence ends with a case that was not hit.")
    operation: str | None = Field(description="The request that was hit.")
    key_class: str | None
    exposed: bool | None = Field(description="Whether it came between the first data file and the commit's answer.")
    acknowledged: bool
    returncode: int | None
    verdict: str | None = Field(description="The guard's, after recovery; unclaimed: none.")
    landed: bool | None = Field(description="Whether the rows were there then.")
    orphans: int = Field(description="Data files that no version named after the retry.")
    violations: list[Violation]
    seconds: float
    error: str | None

    @property
    def tells(self) -> bool:
        """Whether it was carried out; a case without such a line is carried out again."""
        return "harness_error" not in self.violations


class StateRecord(BaseModel):
    """One crash state of a recorded write, after it was settled."""

    model_config = ConfigDict(extra="forbid", title="A line of the results of `scripts/lab faults run --tier replay`")

    state: str = Field(description="Its name: `scripts/lab faults replay` takes it.")
    verdict: str
    landed: bool | None = Field(description="Whether the rows are there.")
    violations: list[Violation]


class ScheduleRecord(BaseModel):
    """One schedule, after it was played."""

    model_config = ConfigDict(extra="forbid")

    schedule: str = Field(description="Its name, without what it also fails without: `scripts/lab faults replay`.")
    whole: str = Field(description="The name of all that its seed draws.")
    members: list[str] = Field(description="The processes that take part, with their clocks and faults.")
    outcomes: list[str] = Field(description="What the callers were told, in the order of their calls.")
    violations: list[Violation]
    what: list[str] = Field(description="How each of them shows.")
    trace: list[str] = Field(description="Its requests with their answers, in order; only of one that is replayed.")


class ScheduleBlock(BaseModel):
    """The schedules of some seeds in a row."""

    model_config = ConfigDict(
        extra="forbid", title="A line of the results of `scripts/lab faults run --tier schedules`"
    )

    first: int = Field(description="The first seed.")
    seeds: int = Field(description="How many there are.")
    requests: int = Field(description="The requests to S3 in all of them.")
    outcomes: dict[str, int] = Field(description="How often a caller was told what.")
    broken: list[ScheduleRecord]
    seconds: float = Field(description="Of one core.")


class ScenarioRecord(BaseModel):
    """One scenario, after its test has run."""

    model_config = ConfigDict(
        extra="forbid", title="A line of the results of `scripts/lab faults run --tier scenarios`"
    )

    test: str = Field(description="Its name: `scripts/lab faults replay` takes it.")
    subject: str
    outcome: Literal["kept", "broken", "skipped", "error"] = Field(
        description="broken: a promise was. error: the test could not be run."
    )
    faults: int = Field(description="How many faults the test has made.")
    seconds: float
    error: str | None

    @property
    def tells(self) -> bool:
        """Whether the test was run; a scenario without such a line is run again."""
        return self.outcome in ("kept", "broken")


class ScriptAttempt(BaseModel):
    """One attempt of a script, and its table afterwards."""

    model_config = ConfigDict(extra="forbid")

    state: str = Field(description="The handler's word.")
    details: str
    verdicts: list[str] = Field(description="Those of the run's documents.")
    found: list[int] = Field(description="The ids in the table.")


class ScriptRecord(BaseModel):
    """One wrong script, after all its attempts."""

    model_config = ConfigDict(extra="forbid", title="A line of the results of `scripts/lab faults run --tier scripts`")

    script: str = Field(description="Its name: `scripts/lab faults replay` takes it.")
    family: str
    format: str
    attempts: list[ScriptAttempt]
    violations: list[Violation]
    seconds: float
    error: str | None

    @property
    def tells(self) -> bool:
        """Whether it was carried out; a script without such a line is carried out again."""
        return "harness_error" not in self.violations


class MutantRecord(BaseModel):
    """One mutant of the code, after its tests have run."""

    model_config = ConfigDict(extra="forbid", title="A line of the results of `scripts/lab faults mutants`")

    name: str = Field(description="Its name in the list of mutants.")
    guard: str = Field(description="The rule that it takes out of the code.")
    file: str
    outcome: Literal["caught", "survived", "error"] = Field(
        description="caught: a test failed. survived: all passed. error: the tests could not be run."
    )
    by: str | None = Field(description="The first test that failed.")
    seconds: float
    error: str | None


SCHEMAS: Final = {
    name: kind.model_json_schema()
    for name, kind in (
        (CASES, CaseRecord),
        (STATES, StateRecord),
        (SCENARIO_RESULTS, ScenarioRecord),
        (SCHEDULES, ScheduleBlock),
        (SCRIPT_RESULTS, ScriptRecord),
        (MUTANTS, MutantRecord),
    )
}

if __name__ == "__main__":
    print(json.dumps(SCHEMAS, indent=2))
