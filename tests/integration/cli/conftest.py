"""The command line as users run it: a process of its own, with a `.soal` of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Soal:
    """Runs `soal …`; its local S3 is not the developer's."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, stdin: str = "", **variables: str) -> Answer:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "soal", *arguments],
            cwd=self.home.parent,
            env={**environment, "SOAL_HOME": str(self.home), **self.variables, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def set_up(home: Path) -> Iterator[Soal]:
    """Yield the command with everything that scripts/setup has made; its local S3 ends afterwards."""
    home.mkdir()
    for name in ("jars", "local-jars", "rest-jars", "rie", "java", "python", "full"):
        if (ROOT / ".soal" / name).exists():
            (home / name).symlink_to(ROOT / ".soal" / name)
    command = Soal(home)
    yield command
    assert command("local", "down").code == 0


@pytest.fixture(scope="session")
def soal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Soal]:
    with set_up(tmp_path_factory.mktemp("cli") / "soal") as command:
        yield command


@pytest.fixture
def own_soal(tmp_path: Path) -> Iterator[Soal]:
    """The command with a local S3 for this test."""
    with set_up(tmp_path / "soal") as command:
        yield command
