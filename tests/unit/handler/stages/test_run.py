"""Which ends of a job leave its JVM to the next one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from handler.process.child import Stop
from safewriter.errors import EXIT_TRY_AGAIN
from safewriter.record.document import Status
from tests.unit.handler.world import COMMITTED, World

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.record.journal import Event
    from safewriter.settle.supervisor import WriteReport

ROLLED_BACK = replace(COMMITTED, status=Status.ROLLED_BACK, checkpoint="s3://c/2")
NOT_SETTLED = replace(COMMITTED, status=Status.IN_PROGRESS, checkpoint="s3://c/2")


@pytest.mark.parametrize(
    ("exit_code", "told", "reports", "state", "is_kept"),
    [
        (0, (), (COMMITTED,), "SUCCESS", True),
        (EXIT_TRY_AGAIN, ("too_late",), (COMMITTED, ROLLED_BACK), "INCOMPLETE", True),
        (0, ("too_late",), (COMMITTED,), "INCOMPLETE", True),
        (EXIT_TRY_AGAIN, ("too_late",), (COMMITTED, NOT_SETTLED), "INCOMPLETE", False),
        (EXIT_TRY_AGAIN, ("too_late", "deadline"), (COMMITTED,), "INCOMPLETE", False),
        (EXIT_TRY_AGAIN, ("too_late",), (ROLLED_BACK,), "FAILED", False),
        (EXIT_TRY_AGAIN, (), (COMMITTED,), "FAILED", False),
        (0, ("too_late",), (), "TIMED_OUT", False),
    ],
)
def test_a_jvm_waits_after_success_and_after_a_step_that_came_too_late(
    tmp_path: Path,
    exit_code: int,
    told: tuple[Event, ...],
    reports: tuple[WriteReport, ...],
    state: str,
    *,
    is_kept: bool,
) -> None:
    """The second only if something is committed, every write has its verdict, and no block met the deadline."""
    world = World(tmp_path)
    ended: list[bool] = []
    world.jvm = SimpleNamespace(end=lambda: ended.append(True))
    world.may_leave = is_kept
    world.end = {"exit_code": exit_code, "signal": None, "stop": None, "own_exit": exit_code, "rests": True}
    world.told = [(event, {}) for event in told]
    world.reports = reports
    assert (world.handle().state, ended == []) == (state, is_kept)


def test_a_job_that_was_stopped_leaves_no_jvm(tmp_path: Path) -> None:
    """It is INCOMPLETE, too, but not by its own step."""
    world = World(tmp_path)
    ended: list[bool] = []
    world.jvm = SimpleNamespace(end=lambda: ended.append(True))
    world.end = {"exit_code": None, "signal": 15, "stop": Stop.TERMINATED, "own_exit": None, "rests": True}
    assert world.handle().state == "INCOMPLETE"
    assert ended
