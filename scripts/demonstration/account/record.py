"""A run of the journey as a JSON document: its acts with their claims and times, the commit, the versions.

`python -m scripts.demonstration.account.record` prints the schema.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import psutil
from pydantic import BaseModel, ConfigDict, Field

from scripts.demonstration.stage import Claim
from scripts.image.build import revision
from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.image.docker import Docker
    from scripts.provision.account import Programs

_LABEL: Final = '{{index .Config.Labels "org.opencontainers.image.revision"}}'
_MINISTACK: Final = "import importlib.metadata; print(importlib.metadata.version('ministack'))"
_CDK: Final = ROOT / "scripts" / "account" / "cdk" / "package.json"


class ActRecord(BaseModel):
    """A part of the journey."""

    model_config = ConfigDict(extra="forbid")

    title: str
    seconds: float = Field(description="Until the next part begins.")
    claims: list[Claim]


class Record(BaseModel):
    """A whole run of the journey."""

    model_config = ConfigDict(extra="forbid", title="The document of `scripts/demo --account --record FILE`")

    at: datetime = Field(description="The end of the run, UTC.")
    commit: str = Field(description="The commit of the command and the stack; `+` behind it: files differed from it.")
    image: str = Field(description="The same of the function's image, by its label.")
    versions: dict[str, str] = Field(description="Of ministack, the CDK's command line, and Docker.")
    cores: int = Field(description="The processors of the machine.")
    memory_mb: int = Field(description="The memory of the machine, in MB.")
    acts: list[ActRecord]


class Acts:
    """The acts so far, each with its start and the number of claims before it."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float, int]] = []

    def begin(self, title: str, claims: int) -> int:
        """Begin an act; return its number."""
        self._begun.append((title, time.monotonic(), claims))
        return len(self._begun)

    def of(self, claims: Sequence[Claim]) -> list[ActRecord]:
        """Return all acts, the last of which ends now."""
        return [
            ActRecord(
                title=title,
                seconds=round(end - begun, 1),
                claims=list(claims[first:last]),
            )
            for (title, begun, first), (_, end, last) in pairwise([*self._begun, ("", time.monotonic(), len(claims))])
        ]


def record(acts: Acts, claims: Sequence[Claim], docker: Docker, programs: Programs, image: str) -> Record:
    """Return the document of a run that is over."""
    label = docker.read("image", "inspect", "--format", _LABEL, image).strip()
    ministack = subprocess.run([programs.emulator[0], "-c", _MINISTACK], capture_output=True, text=True, check=True)
    return Record(
        at=datetime.now(UTC),
        commit=revision(ROOT),
        image=label,
        versions={
            "ministack": ministack.stdout.strip(),
            "aws-cdk": json.loads(_CDK.read_text(encoding="utf-8"))["dependencies"]["aws-cdk"],
            "docker": docker.read("version", "--format", "{{.Server.Version}}").strip(),
        },
        cores=os.cpu_count() or 1,
        memory_mb=psutil.virtual_memory().total >> 20,
        acts=acts.of(claims),
    )


if __name__ == "__main__":
    print(json.dumps(Record.model_json_schema(), indent=2))
