"""The commands `soal runs show` and `cancel` take nothing that is missing or silent for an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from handler.request.job import requested
from handler.runs.store import Runs
from handler.settings import read_settings
from safewriter.deadline import Deadline
from safewriter.record.liveness import GRACE_MS
from safewriter.schedule import Schedule
from soal.console.problem import Problem
from tests.support.command_line import app
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from handler.runs.store import OpenRun

SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
WHOLE_MS = 600_000


class Bench:
    """The checkpoint bucket of a world, and `soal runs …` on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World()
        self.records = Runs(self.world.bucket, self.world.clock, self.world.sleep)
        monkeypatch.setattr("soal.s3_command.checkpoint_store", lambda *_: self.world.bucket)

    def begin(self, execution: str | None = None) -> OpenRun:
        job = requested({"script": "s3://scripts/a.py", "clientToken": "run"}, SETTINGS, "r").job
        deadline = Deadline(self.world.now_ms + WHOLE_MS, self.world.now_ms, self.world.clock)
        schedule = Schedule.of(deadline, 0)
        return self.records.begin(job, run_id="one", request_id="q", schedule=schedule, execution=execution)

    def soal(self, *arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, ["runs", *arguments])
        if isinstance(done.exception, Problem):
            return done.exception.exit_code, done.stdout, f"{done.stderr}{done.exception}"
        return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_show_finds_a_write_by_its_marker(bench: Bench) -> None:
    """A run whose attempt died before its claim is neither unknown nor without a write."""
    bench.world.job().claimer.announce()
    code, out, said = bench.soal("show", "run")
    assert (code, bench.world.key in out, "announced" in out, said) == (0, True, True, "")
    bench.begin()
    code, out, _ = bench.soal("show", "run")
    assert (code, bench.world.key in out, "no guarded write" in out) == (0, True, False)


def test_show_names_what_may_hide_a_write(bench: Bench) -> None:
    """A run of which nothing readable tells is not unknown, and one with a record alone may have a write."""
    bench.world.bucket.put("checkpoints/sw-0.json", b"{")
    code, out, said = bench.soal("show", "run")
    assert (code, out, "nothing is known" in said) == (1, "", False)
    assert "checkpoints/sw-0.json (or a marker of its write) cannot be read" in said

    bench.begin()
    code, out, said = bench.soal("show", "run")
    assert (code, "RUNNING" in out, "no guarded write" in out, "sw-0.json" in said) == (0, True, False, True)

    bench.world.bucket.delete("checkpoints/sw-0.json")
    assert "no guarded write" in bench.soal("show", "run")[1]
    assert "nothing is known of a run 'another'" in bench.soal("show", "another")[2]


@pytest.mark.parametrize("execution", [None, "arn:aws:lambda:eu-west-1:1:function:f:1/durable-execution/e/1"])
def test_a_handler_without_a_sign_of_life_is_asked_to_end(bench: Bench, execution: str | None) -> None:
    """It may have missed its beats: the next one finds the request."""
    run = bench.begin(execution)
    bench.world.sleep(30)

    code, out, said = bench.soal("cancel", "run", "--wait-s", "0")

    assert (code, bench.records.is_cancelled(run.record), "RUNNING" in out) == (75, True, True)
    assert "attempt 1: no sign of life for 30 s" in said
    assert "soal recover --run run" in said


def test_a_handler_with_a_sign_of_life_is_not_called_silent(bench: Bench) -> None:
    """The hint at `soal recover` is for a handler that may be dead."""
    bench.begin()
    assert "soal recover" not in bench.soal("cancel", "run", "--wait-s", "0")[2]


def test_a_handler_whose_time_and_grace_are_over_is_not_asked(bench: Bench) -> None:
    """Only then no process of the run is left; the end of the deadline alone does not tell it."""
    run = bench.begin()
    bench.world.sleep((WHOLE_MS + GRACE_MS) / 1000)
    assert bench.soal("cancel", "run", "--wait-s", "0")[0] == 75
    bench.world.bucket.delete_all([entry.key for entry in bench.world.bucket.list("cancels/")])

    bench.world.sleep(1)
    code, _, said = bench.soal("cancel", "run", "--wait-s", "0")

    assert (code, "its deadline and the grace after it are over" in said) == (1, True)
    assert not bench.records.is_cancelled(run.record)


def test_an_execution_goes_on_after_an_attempt_whose_time_is_over(bench: Bench) -> None:
    """The request is for its next attempt, too; one that has ended is not called silent."""
    run = bench.begin("arn:aws:lambda:eu-west-1:1:function:f:1/durable-execution/e/1")
    bench.world.grace_passes()
    assert bench.soal("cancel", "run", "--wait-s", "0")[0] == 75
    assert bench.records.is_cancelled(run.record.model_copy(update={"run_id": "two"}))

    bench.records.end(run, state="INCOMPLETE")
    bench.world.sleep(30)
    code, _, said = bench.soal("cancel", "run", "--wait-s", "0")
    assert (code, "soal recover" in said) == (75, False)
