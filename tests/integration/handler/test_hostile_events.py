"""The right to invoke the function runs a job and does nothing else: every hostile event, through the handler."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from handler.app import handle
from handler.services import Services
from tests.integration.handler.hostile_conf import EVIL, hostile_conf
from tests.integration.handler.hostile_events import ENVIRONMENT, SECRETS, hostile_events
from tests.support.memory_store import MemoryObjectStore
from tests.support.walks import new_walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.outcome.result import Result
    from handler.spark.command import Command

EVENTS = dict(hostile_events())
FREE_TEXTS = ("spark.app.name", "spark.databricks.delta.commitInfo.userMetadata")
"""Settings that are only shown to people."""


class StartedError(Exception):
    """Raised in place of the child's start."""


class World:
    """An S3 that has every requested object, and a child that only reports how it would be started."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.commands: list[Command] = []
        self.properties: list[str] = []

    def services(self) -> Services:
        return Services(client=lambda: self, store=lambda _: MemoryObjectStore(), start_child=self.start)

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - as boto3 calls it
        self.fetched.append(f"s3://{Bucket}/{Key}")
        return {"ContentLength": 1, "Body": self}

    def iter_chunks(self, _size: int) -> Iterator[bytes]:
        yield b"#"

    @contextmanager
    def start(self, command: Command, *_: object, **__: object) -> Iterator[Any]:
        # The kernel must accept the job's command, too: it limits each text, and all of them together.
        words, variables = (*command.argv, *command.submission), {**command.environment, **command.variables}
        subprocess.run(words, executable="/bin/true", env=variables, check=True)
        self.commands.append(command)
        path = Path(command.submission[command.submission.index("--properties-file") + 1])
        self.properties.append(path.read_text(encoding="utf-8"))
        yield self

    def supervise(self, *_: object, **__: object) -> Any:
        raise StartedError


def answered(event: object, tmp_path: Path) -> tuple[Result, World]:
    world = World()
    return handle(event, new_walk(), {**ENVIRONMENT, "TMPDIR": str(tmp_path)}, world.services()), world


def test_there_are_enough_of_them() -> None:
    """The list only grows."""
    assert len(EVENTS) >= 400
    assert len(hostile_conf()) >= 200


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS.keys())
def test_a_hostile_event_gets_no_more_than_a_job(
    event: object, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No foreign script starts, no foreign endpoint reaches Spark, no secret shows, and the answer is never the
    handler's own fault.
    """
    result, world = answered(event, tmp_path)
    answer, log = result.model_dump_json(), "".join(capfd.readouterr())

    assert all(uri.startswith("s3://scripts/") for uri in world.fetched)
    for properties in world.properties:
        assert "$" not in properties
        lines = [line for line in properties.splitlines() if not line.startswith(FREE_TEXTS)]
        assert not any(EVIL in line or "com.example" in line for line in lines)
    for secret in SECRETS:
        assert secret not in answer + log + "".join(world.properties)
        assert not any(secret in word for command in world.commands for word in (*command.argv, *command.submission))
    assert result.error is not None
    if world.commands:
        assert "StartedError" in result.error.message  # the test's own error for a child that would start
    else:
        assert (result.error.type, result.error.usage) == ("UsageError", True), result.state_details
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", hostile_conf(), ids=repr)
def test_no_hostile_setting_reaches_the_driver(key: str, tmp_path: Path) -> None:
    """Each is refused alone, by its field's name and without its value's secrets."""
    result, world = answered({"entryPoint": "s3://scripts/job.py", "conf": {key: hostile_conf()[key]}}, tmp_path)
    assert result.error is not None
    assert result.error.type == "UsageError"
    assert world.commands == []


def test_a_job_that_is_not_hostile_starts(tmp_path: Path) -> None:
    """The other tests would also pass if nothing ever started."""
    result, world = answered({"entryPoint": "s3://scripts/job.py", "conf": {"spark.app.name": "mine"}}, tmp_path)
    assert result.error is not None
    assert "StartedError" in result.error.message
    assert world.fetched == ["s3://scripts/job.py"]
    assert "spark.app.name=mine" in world.properties[0]
