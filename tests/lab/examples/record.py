"""The result of one example as a line of JSON. `python -m tests.lab.examples.record` prints its schema."""

from __future__ import annotations

import json
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from handler.spark.missing_dependencies import Variant

__all__ = ["RESULTS", "ExampleRecord"]

RESULTS: Final = "examples.jsonl"
_ENDS: Final = ("SUCCESS", "TIMED_OUT")
"""An endless example ends at the function's deadline."""


class ExampleRecord(BaseModel):
    """How one example ended on one variant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    example: str = Field(description="its path below PySpark's folder of Python examples")
    variant: Variant = Field(description="the image's variant whose packages and jars it had")
    needs: str | None = Field(description="what it needs beside Spark and its data, if anything")
    state: str | None = Field(description="the state of the run's result; null if it was not run")
    is_usage: bool = Field(description="the result tells the caller to change something: exit code 2")
    says: str | None = Field(description="the result's stateDetails")

    @property
    def is_open(self) -> bool:
        """Whether it had all that it needs, and neither succeeded nor reported what is missing."""
        return self.needs is None and self.state not in _ENDS and not self.is_usage


if __name__ == "__main__":
    print(json.dumps(ExampleRecord.model_json_schema(), indent=2))
