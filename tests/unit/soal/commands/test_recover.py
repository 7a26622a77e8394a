"""The command `soal recover` ends with an exit code for unreadable, living and settled writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from handler.runs.store import _record_key
from soal.commands import recover as command
from soal.console.problem import Problem
from soal.recovery import Recoverer
from tests.support.command_line import app
from tests.unit.safewriter.record.samples import named
from tests.unit.safewriter.world import World


def soal_recover(world: World, monkeypatch: pytest.MonkeyPatch, *more: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run the command on the world's stores; return its exit code, its answer, and what it says."""
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=2**60)
    monkeypatch.setattr("soal.s3_command.checkpoint_store", lambda *_: world.bucket)
    monkeypatch.setattr(command, "_recoverer", lambda *_: recoverer)
    done = CliRunner().invoke(app, ["recover", "--json", *more])
    if isinstance(done.exception, Problem):
        return done.exception.exit_code, [], f"{done.stderr}{done.exception}"
    return done.exit_code, json.loads(done.stdout), done.stderr


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

    code, found, _ = soal_recover(world, monkeypatch)

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

    code, found, _ = soal_recover(world, monkeypatch, "--run", "run")

    assert [(one["writeKey"], one["action"]) for one in found] == [(world.key, "settled")]
    assert code == 0


def test_what_lives_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A live run gives exit code 75; with everything settled it is 0."""
    world = World()
    world.job().begin()
    assert soal_recover(world, monkeypatch)[0] == 75
    world.owner_dies()
    assert soal_recover(world, monkeypatch)[0] == 0


def second_write(world: World) -> str:
    """Put the document of a second write of the run, without a marker; return its key."""
    document = named(world.document, step="second")
    assert world.checkpoints.create(document)
    return document.write_key


def test_a_damaged_document_of_the_run_is_reported_beside_its_settled_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its marker names the run, so that a settled write beside it does not end the command with exit code 0."""
    world = World()
    world.job().begin()
    world.settle()
    settled = second_write(world)
    world.bucket.put(f"checkpoints/{world.key}.json", b"{")
    world.grace_passes()

    code, found, said = soal_recover(world, monkeypatch, "--run", "run")

    assert {(one["writeKey"], one["action"]) for one in found} == {(settled, "cleaned"), (world.key, "unreadable")}
    assert (code, world.checkpoints.uri(world.key) in said) == (1, True)


def test_a_write_of_the_run_without_a_document_is_looked_for_in_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker names the run: its commit is found, though somebody has deleted the document."""
    world = World()
    world.job().begin().land()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    assert soal_recover(world, monkeypatch, "--run", "run")[0] == 75
    world.grace_passes()

    code, found, _ = soal_recover(world, monkeypatch, "--run", "run")

    assert [(one["writeKey"], one["before"], one["status"]) for one in found] == [(world.key, "announced", "committed")]
    assert code == 0
    assert soal_recover(world, monkeypatch, "--run", "another")[0] == 1


def test_a_damaged_document_that_nothing_ties_to_a_run_may_be_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and the exit code is 1, with and without other writes of the run."""
    world = World()
    world.job().begin()
    world.bucket.put("checkpoints/sw-0.json", b"{")
    world.owner_dies()

    code, found, said = soal_recover(world, monkeypatch, "--run", "run")
    assert ([(one["writeKey"], one["action"]) for one in found], code) == ([(world.key, "settled")], 1)
    assert "checkpoints/sw-0.json (or a marker of its write) cannot be read" in said

    code, _, said = soal_recover(world, monkeypatch, "--run", "another")
    assert (code, "checkpoints/sw-0.json" in said, "has no guarded write" in said) == (1, True, False)

    code, found, _ = soal_recover(world, monkeypatch, "--run", "run", "--write", "sw-0")
    assert ([(one["writeKey"], one["action"]) for one in found], code) == ([("sw-0", "unreadable")], 1)
    assert soal_recover(world, monkeypatch, "--run", "run", "--write", world.key)[0] == 0


def test_a_verdict_never_hits_another_write_than_the_damaged_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a document cannot be read, --write must name the write; the named one gets the verdict."""
    world = World()
    world.job().begin()
    unclear = second_write(world)
    world.bucket.put(f"checkpoints/{unclear}.json", b"{")
    world.grace_passes()
    before = world.bucket.contents()
    by_hand = ("--run", "run", "--verdict", "rolled_back", "--reason", "read the table")

    code, _, said = soal_recover(world, monkeypatch, *by_hand)
    assert (code, "--verdict without --write" in said, world.bucket.contents()) == (2, True, before)

    code, found, _ = soal_recover(world, monkeypatch, *by_hand, "--write", world.key)
    assert ([(one["writeKey"], one["status"]) for one in found], code) == ([(world.key, "rolled_back")], 0)


def test_a_damaged_document_gets_its_verdict_by_hand_by_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict mends the document, and nothing is left that could not be read."""
    world = World()
    world.job().begin()
    world.bucket.put(f"checkpoints/{world.key}.json", b"{")
    world.grace_passes()
    by_hand = ("--run", "run", "--verdict", "rolled_back", "--reason", "read the table")
    assert soal_recover(world, monkeypatch, *by_hand)[0] == 2

    code, found, _ = soal_recover(world, monkeypatch, *by_hand, "--write", world.key)

    assert ([(one["writeKey"], one["status"]) for one in found], code) == ([(world.key, "rolled_back")], 0)
