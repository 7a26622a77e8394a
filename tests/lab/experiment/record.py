"""The results of the experiment as lines of JSON, each in one `write(2)`: a killed experiment leaves only whole lines.

`python -m tests.lab.experiment.record` prints the schema of a line.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["RUNS", "Outcome", "RunRecord"]

RUNS: Final = "runs.jsonl"

Outcome = Literal["success", "silent_loss", "visible_error", "rollback_success"]
"""The paper's words."""
Truth = Literal[
    "success",
    "silent_loss",
    "visible_error",
    "rollback_success",
    "committed_when_killed",
    "false_verdict",
    "damaged",
    "not_killed",
]
"""Additional outcomes: the rows are there although the process was killed; the guard's verdict differs from what
readers find; readers find neither the rows before nor those after; the run was to be killed, and was not.
"""


class Span(BaseModel):
    """One request, in milliseconds since the start of the process."""

    model_config = ConfigDict(extra="forbid")

    operation: str
    key_class: str
    began_ms: float
    ended_ms: float


class RunRecord(BaseModel):
    """One run. The first nine fields are those of the paper's own records."""

    model_config = ConfigDict(extra="forbid", title="A line of the results of `scripts/lab experiment run`")

    run_id: str
    table_format: Literal["delta", "iceberg"]
    dataset: str = Field(description="The paper's name of the size: 22k, 100k, 500k.")
    kill_phase: str = Field(description="As the paper's KILL_AFTER_PHASE: empty, data or commit.")
    use_safe_writer: bool
    outcome: Outcome = Field(description="By the paper's rule, which looks at the exit code alone.")
    duration_ms: float = Field(description="From the start of the process to its end.")
    returncode: int
    timestamp: datetime

    cell: str
    fails: bool = Field(description="The script raised an error after its statement.")
    truth: Truth = Field(description="By what deltalake or pyiceberg find in the table, and by its files.")
    killed: bool = Field(description="Whether the request of the kill has come.")
    rows_before: int
    rows_added: int = Field(description="After recovery, if the run was guarded.")
    rows_expected: int = Field(description="The rows of the file.")
    orphans: int = Field(description="Data files that no version of the table names, after recovery if guarded.")
    orphan_bytes: int
    orphans_at_kill: int = Field(description="The same when the process had ended.")
    orphan_bytes_at_kill: int
    verdict: str | None = Field(description="The guard's, after recovery.")
    settle_ms: float | None = Field(description="The recovery's time: the verdict and the clean-up.")
    session_ms: float | None = Field(description="By the script's own clock, if it lived: until the session is there.")
    write_ms: float | None = Field(description="Its statement.")
    end_ms: float | None = Field(description="From its end to that of the block: the verdict, or the undo.")
    gap_ms: float | None = Field(description="From the answer to the last PUT of data to that of the commit.")
    requests: list[Span] = Field(description="Of the first run of each cell.")
    error: str | None = Field(description="The end of what the process said, if it ended otherwise than meant.")


if __name__ == "__main__":
    print(json.dumps(RunRecord.model_json_schema(), indent=2))
