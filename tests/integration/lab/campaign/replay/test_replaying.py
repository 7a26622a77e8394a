"""Crash states of real recordings: the real code settles them all, and a guard without a part does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.tables.delta import table as delta_table
from safewriter.tables.iceberg.table import IcebergTable
from tests.lab.campaign.replay.recording import SUBJECTS, Recording, record
from tests.lab.campaign.replay.replaying import CrashState, Replayer
from tests.lab.campaign.replay.states import bits, states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.history import DeltaHistory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_SHORT = ("delta-append-write", "delta-create-write", "iceberg-append-write")
"""Each format. A created table's clean-up looks around it, too."""


@pytest.fixture(
    scope="module",
    params=[one if one.name in _SHORT else pytest.param(one, marks=pytest.mark.matrix) for one in SUBJECTS],
    ids=lambda one: one.name,
)
def recording(request: pytest.FixtureRequest) -> Recording:
    return record(request.param, "moto")


@pytest.fixture
def replayer(recording: Recording) -> Iterator[Replayer]:
    with Replayer(recording) as made:
        yield made


def before_the_commit(recording: Recording) -> CrashState:
    """Return the state in which the commit is pending."""
    classes = [step.key_class for step in recording.steps]
    commit = classes.index("catalog" if "catalog" in classes else "delta_log/commit")
    return CrashState(recording.subject.name, recording.steps[commit].after, 1 << commit, "supervisor")


def test_what_a_crash_can_leave_is_settled(recording: Recording, replayer: Replayer) -> None:
    """A selection: states in a line from nothing to everything, with any late requests and any settler's death."""
    line = {0}
    for number in range(len(recording.steps)):
        line.add(max(line) | 1 << number)
    verdicts = set()
    for first in replayer.families():
        if first.applied in line and len([*bits(first.late)]) < 2:
            for found in replayer.family(first):
                assert found.violations == (), found.state.name
                verdicts.add(found.verdict)
    assert verdicts == {"committed", "rolled_back"}


def test_a_recording_has_a_state_for_each_way_to_crash(recording: Recording) -> None:
    """Data, commit and verdict among them."""
    assert {"marker", "checkpoint", "data"} <= {step.key_class for step in recording.steps}
    assert len([*states([step.after for step in recording.steps])]) > len(recording.steps)


def test_without_a_fence_a_late_commit_changes_the_table(
    recording: Recording, replayer: Replayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the states are those in which the fence is needed."""

    def only_look(history: DeltaHistory, document: Checkpoint, *_: object) -> object:
        return history.since(document.attempt)

    state = before_the_commit(recording)
    assert replayer.replay(state).violations == ()
    monkeypatch.setattr(delta_table, "fence", only_look)
    monkeypatch.setattr(IcebergTable, "_decide", lambda *_: None)
    monkeypatch.setattr(IcebergTable, "_barred", lambda _, table, __: table)  # a clean-up fences, too
    assert "changed" in replayer.replay(state).violations


def test_without_a_clean_up_files_are_left(
    recording: Recording, replayer: Replayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They belong to a writer that died before its commit."""
    state = before_the_commit(recording)
    state = CrashState(state.subject, state.applied, 0, "sweeper")
    assert replayer.replay(state).violations == ()
    monkeypatch.setattr(delta_table.DeltaTable, "remove_leftovers", lambda *_, **__: 0)
    monkeypatch.setattr(IcebergTable, "remove_leftovers", lambda *_, **__: 0)
    assert replayer.replay(state).violations == ("orphans",)
