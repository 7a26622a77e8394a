from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.model.iceberg.materialised import Materialised
from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.scenarios import SCENARIOS
from tests.model.iceberg.setting import IcebergSetting
from tests.model.scenarios import both_commit_points
from tests.model.searching import scenes, settle_alone
from tests.model.setting import OPERATOR, Setting
from tests.model.state import Proc

if TYPE_CHECKING:
    from safewriter.state import CommitPoint
    from tests.model.state import State

NAMES = [
    "iceberg, anything, a creation",
    "iceberg, main is set back",
    "iceberg, retention",
    "iceberg, the table is dropped, and registered again",
    "iceberg, retention, two statements",
    "iceberg, two attempts, one retry",
]
MATRIX = {"iceberg, main is set back (success)", "iceberg, two attempts, one retry (success)"}
"""Nearly the same as with the other commit point."""


@dataclass(frozen=True)
class Scene:
    """A state in which somebody begins to settle; what others would do next does not belong to it."""

    state: State
    commit_point: CommitPoint

    @classmethod
    def of(cls, state: State, who: int, commit_point: CommitPoint) -> Scene:
        settling = state.procs[who].settling
        assert settling is not None
        settler = Proc("S1", settling=settling._replace(then="done", failed="dead", cleans_later=False, by_me=False))
        procs = tuple(settler if other == OPERATOR else Proc("dead") for other in range(len(state.procs)))
        clocks = tuple(2 if clock == 2 else 0 for clock in state.clocks)
        quiet = state._replace(
            procs=procs,
            air=(),
            faults=0,
            foreign=0,
            markers=(True,) * 3,
            expired=(True,) * 3,
            clocks=clocks,
            doc=state.doc._replace(etag=1) if state.doc is not None else None,
            gates=Setting().start().gates,
            table=state.table._replace(taken=False, late=False, strays=()),
            gap=False,
        )
        return cls(quiet, commit_point)


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(one, id=name, marks=pytest.mark.matrix if name in MATRIX else ())
        for name, one in both_commit_points({n: SCENARIOS[n] for n in NAMES})
    ],
)
def test_the_code_settles_as_the_model_does(setting: IcebergSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    """From every state in which somebody begins to settle: the same table, document, files, and the same doubt."""
    point = setting.commit_point
    found = scenes(IcebergModel(setting), lambda state, who: Scene.of(state, who, point))

    assert found
    for scene in found:
        settling = scene.state.procs[OPERATOR].settling
        assert settling is not None
        world = Materialised(scene.state, scene.commit_point)
        monkeypatch.setattr("safewriter.tables.iceberg.catalog._catalog", lambda *_, one=world.catalog: one)
        told = world.settled(settling)
        after = settle_alone(IcebergModel(IcebergSetting(commit_point=scene.commit_point)), scene.state)
        staged, unstaged = world.files()
        seen = told, world.refs(), world.snapshots(), world.doc(), (staged - expired(scene.state), unstaged)
        assert seen == expected(scene.state, after), scene


def expired(state: State) -> set[int]:
    """Return the snapshots that others have expired and whose files they delete, if our names do not lead there."""
    table = state.table
    shown = set(table.ancestry(table.main)) | set(table.shown(table.main))
    return {number for number, one in enumerate(table.snapshots, 1) if one.gone and number not in shown}


def expected(before: State, after: State) -> Any:
    doc, table = after.doc, after.table
    assert doc is not None
    refs = table.refs if table.there else (0,) * len(table.refs)
    known = {number for number, one in enumerate(table.snapshots, 1) if not one.gone and table.there}
    told = (doc.status.value, doc.epoch, tuple(c.picked for c in doc.claims), tuple(c.cleaned for c in doc.claims))
    of_before = range(1, 1 + (len(before.table.snapshots) if table.there else 0))
    staged = {number for number in of_before if not table.at(number).deleted and not table.at(number).holds}
    staged -= expired(before)
    unstaged = {c.attempt for c in doc.claims if after.files[c.attempt] in ("there", "stray")}
    return after.procs[OPERATOR].at == "done", refs, known, told, (staged, unstaged)
