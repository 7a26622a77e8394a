"""Jobs take turns on the stack's table of locks, with the deployed role, in a DynamoDB that enforces its rights."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from safewriter.coordination.configuration import PREFIX
from tests.support.account import Caller, Role
from tests.support.command_line import app
from tests.support.contenders import ProcessContender
from tests.support.turn_player import Events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scripts.account.server import Account

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TURNS = 5


@pytest.fixture
def contender(account: Account, made: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str], ProcessContender]]:
    """Start a job of the lock `daily` in a process of its own, with a session of the job's role."""
    begun: list[ProcessContender] = []
    role = Role.of(Caller(account.aws), "RuntimeFunction")

    def begin(job: str) -> ProcessContender:
        mapping = {
            "lock.name": "daily",
            "name": job,
            "backend": f"dynamodb://{made['LockTable']}",
            "lease.seconds": "3",
            "poll.seconds": "0.05",
            "max.wait.seconds": "120",
        }
        named = {PREFIX + key: value for key, value in mapping.items()}
        begun.append(ProcessContender(named, str(tmp_path / "events"), role.variables))
        return begun[-1]

    yield begin
    for each in begun:
        each.kill()


def test_jobs_take_turns_on_the_table_of_the_stack(
    contender: Callable[[str], ProcessContender],
    account: Account,
    made: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No turn begins before the one before it has ended; none is lost, also not behind a job that was killed."""
    dead, *jobs = [contender(name) for name in ("dead", "first", "second", "third")]
    assert dead.ask("lock").startswith("locked ")
    dead.kill()
    answers = [job.tell(f"turns {TURNS}") for job in jobs]
    assert [answer() for answer in answers] == [f"completed {TURNS}"] * len(jobs)

    events = Events(str(tmp_path / "events")).all()
    ends = {event.token: event for event in events if event.what == "end"}
    begins = sorted((event for event in events if event.token in ends and event.what == "begin"), key=lambda e: e.at_s)
    assert all(ends[one.token].at_s <= two.at_s and one.token < two.token for one, two in pairwise(begins))
    assert Counter(event.job for event in ends.values()) == dict.fromkeys(("first", "second", "third"), TURNS)
    for name, value in account.aws.items():
        monkeypatch.setenv(name, value)
    shown = CliRunner().invoke(
        app, ["locks", "show", "daily", "--backend", f"dynamodb://{made['LockTable']}", "--json"]
    )
    lock = json.loads(shown.stdout)
    assert max(job["completion"] for job in lock["jobs"]) == TURNS * len(jobs)
    assert lock["holder"] is None
