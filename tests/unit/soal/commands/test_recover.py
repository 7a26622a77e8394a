"""The command `soal recover` ends with an exit code for unreadable, living and settled writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from handler.runs.store import _record_key
from soal.commands import recover as command
from soal.recovery import Recoverer
from tests.support.command_line import app
from tests.unit.safewriter.world import World


def soal_recover(world: World, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[int, list[dict[str, Any]]]:
    """Run the command on the world's stores."""
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=2**60)
    monkeypatch.setattr("soal.s3_command.checkpoint_store", lambda *_: world.bucket)
    monkeypatch.setattr(command, "_recoverer", lambda *_: recoverer)
    done = CliRunner().invoke(app, ["recover", "--json", *more])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize("name", ["checkpoints/sw-0.json", "open/sw-0/0"])
def test_a_write_that_cannot_be_read_is_reported_and_the_others_are_settled(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable write does not stop the others; the exit code is 1."""
    world = World()
    world.job().begin()
    world.bucket.put("open/sw-0/0", b"{}")
    world.bucket.put(name, b"no JSON")
    world.owner_dies()

    code, found = soal_recover(world, monkeypatch)

    assert [(one["writeKey"], one["action"]) for one in found] == [("sw-0", "unreadable"), (world.key, "settled")]
    assert code == 1


@pytest.mark.parametrize("body", [b"{", b"x" * (5 << 20)])
def test_a_damaged_record_of_the_run_keeps_none_of_its_writes_open(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents tell which writes are the run's."""
    world = World()
    world.job().begin()
    world.bucket.put(_record_key("run"), body)
    world.owner_dies()

    code, found = soal_recover(world, monkeypatch, "--run", "run")

    assert [(one["writeKey"], one["action"]) for one in found] == [(world.key, "settled")]
    assert code == 0


def test_what_lives_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live run gives exit code 75; with everything settled it is 0."""
    world = World()
    world.job().begin()
    assert soal_recover(world, monkeypatch)[0] == 75
    world.owner_dies()
    assert soal_recover(world, monkeypatch)[0] == 0
