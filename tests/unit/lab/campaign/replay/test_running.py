"""The campaign records each write once and settles its crash states by families, in parts that can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pytest

from tests.lab.campaign.record import STATES, StateRecord
from tests.lab.campaign.replay import running
from tests.lab.campaign.replay.recording import SUBJECTS, Recording, Step, Subject
from tests.lab.campaign.replay.replaying import CrashState, Replayed
from tests.lab.results import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ONE = SUBJECTS[0]
STEP = Step(operation="PutObject", bucket="lake", key="k", key_class="data", condition=None, body=b"\x00\xff")
RECORDING = Recording(
    subject=ONE, table="s3a://lake/t", root="t", ended_ms=1, base={"k": (1, b"\xff")}, catalog=b"", steps=(STEP, STEP)
)


class Replayer:
    """Settles nothing: three families of two states."""

    def __init__(self, recording: Recording) -> None:
        assert recording == RECORDING

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def families(self) -> Iterator[CrashState]:
        return (CrashState(ONE.name, applied, 0, "sweeper") for applied in range(3))

    def family(self, first: CrashState) -> Iterator[Replayed]:
        yield self.replay(first)
        yield self.replay(CrashState(first.subject, first.applied, 0, "sweeper", "die", 1))

    def replay(self, state: CrashState) -> Replayed:
        return Replayed(state, "rolled_back", landed=False, changes=1, violations=())


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Subject]:
    made: list[Subject] = []

    def record(subject: Subject, s3: str) -> Recording:
        assert s3 == "moto"
        made.append(subject)
        return RECORDING

    monkeypatch.setattr(running, "Replayer", Replayer)
    monkeypatch.setattr(running, "record", record)
    return made


def names(folder: Path) -> list[str]:
    return [one.state for one in read(folder / STATES, StateRecord)]


def test_a_write_is_recorded_once(tmp_path: Path, recorded: list[Subject]) -> None:
    """All states of a folder are of one recording, whenever they are settled."""
    assert running._recorded(tmp_path, ONE, "moto") == running._recorded(tmp_path, ONE, "moto") == RECORDING
    assert recorded == [ONE]


def test_the_parts_of_the_work_settle_each_family_once(tmp_path: Path) -> None:
    """Whole."""
    for part in range(2):
        assert running._settle(tmp_path, RECORDING, (), None, part, 2)
    firsts = [CrashState(ONE.name, applied, 0, "sweeper") for applied in (0, 2, 1)]
    assert names(tmp_path) == [name for one in firsts for name in (one.name, one.name.replace("-end", "-die1"))]


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    """A family is written whole, so its first state tells."""
    done = {CrashState(ONE.name, 1, 0, "sweeper").name}
    assert running._settle(tmp_path, RECORDING, done, None, 0, 1)
    assert not done & {*names(tmp_path)}
    assert len(names(tmp_path)) == 4


def test_nothing_begins_when_the_time_is_over(tmp_path: Path) -> None:
    """The work is not done then."""
    assert not running._settle(tmp_path, RECORDING, (), 0.0, 0, 1)
    assert names(tmp_path) == []


def test_a_state_is_settled_again_by_its_name(tmp_path: Path, recorded: list[Subject]) -> None:
    """Of a new recording, if no folder has one."""
    state = CrashState(ONE.name, 1, 2, "sweeper", "land", 3)
    assert running.replay(state, tmp_path, "moto").state == running.replay(state, None, "moto").state == state.name
    assert len(recorded) == 2


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (CrashState("delta-insert-write", 1, 0, "sweeper"), "'delta-insert-write' is no recorded write"),
        (CrashState(ONE.name, 1, 4, "sweeper"), "has 2 steps, and .*-1-4-sweeper-end has more"),
    ],
)
def test_a_state_of_no_recording_is_refused(tmp_path: Path, state: CrashState, problem: str) -> None:
    """With the reason."""
    with pytest.raises(ValueError, match=problem):
        running.replay(state, tmp_path, "moto")
