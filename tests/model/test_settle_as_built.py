"""The real code settles a Delta write as the model does, from every state in which the model begins to settle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.model.materialised import Materialised
from tests.model.model import Model
from tests.model.scenarios import SCENARIOS, both_commit_points
from tests.model.searching import scenes, settle_alone
from tests.model.setting import OPERATOR, Setting
from tests.model.state import Proc

if TYPE_CHECKING:
    from safewriter.record.document import CommitPoint
    from tests.model.state import State

NAMES = [
    "new table",
    "killed, settled from outside",
    "two attempts",
    "supervised",
    "a statement that removes rows",
    "a statement with a transaction of its own",
    "refused statements, and a retry",
    "an undone write that somebody restores",
    "stands still beyond its grace",
]


@dataclass(frozen=True)
class Scene:
    """A state in which a process begins to settle, with all other processes stopped."""

    state: State
    commit_point: CommitPoint

    @classmethod
    def of(cls, state: State, who: int, commit_point: CommitPoint) -> Scene:
        settler = Proc("S1", settling=state.procs[who].settling._replace(then="done", failed="dead"))  # type: ignore[union-attr]
        nobody = Proc("dead")
        procs = tuple(settler if other == OPERATOR else nobody for other in range(len(state.procs)))
        quiet = state._replace(
            procs=procs,
            air=(),
            faults=0,
            foreign=0,
            markers=(True,) * 3,
            expired=(True,) * 3,
            gates=Setting().start().gates,
        )
        return cls(quiet, commit_point)


@pytest.mark.parametrize(
    "setting", [pytest.param(one, id=name) for name, one in both_commit_points({n: SCENARIOS[n] for n in NAMES})]
)
def test_the_code_settles_as_the_model_does(setting: Setting) -> None:
    """From every state in which a settle begins: the same log, document and files, and the same unknown outcomes."""
    point = setting.commit_point
    found = scenes(Model(setting), lambda state, who: Scene.of(state, who, point))

    assert found
    for scene in found:
        before = scene.state.procs[OPERATOR].settling
        assert before is not None
        after = settle_alone(Model(Setting(commit_point=scene.commit_point)), scene.state)
        world = Materialised(scene.state, scene.commit_point)
        told = world.settled(before.cause, before)
        assert (told, world.entries(), world.doc(), world.files()) == expected(after), scene


def expected(after: State) -> Any:
    doc = after.doc
    assert doc is not None
    told = after.procs[OPERATOR].at == "done"
    files = tuple(after.files[claim.attempt] in ("there", "stray") for claim in doc.claims)
    cleaned = tuple(claim.cleaned for claim in doc.claims)
    return told, after.log, (doc.status.value, doc.epoch, doc.named, doc.incomplete, cleaned), files
