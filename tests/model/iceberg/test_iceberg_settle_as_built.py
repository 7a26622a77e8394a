"""The real code settles an Iceberg write as the model does, from every state in which the model begins to settle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.model.iceberg.materialised import Materialised
from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.scenarios import SCENARIOS
from tests.model.iceberg.setting import IcebergSetting
from tests.model.scenarios import both_commit_points
from tests.model.searching import scenes, settle_alone
from tests.model.setting import OPERATOR, Setting
from tests.model.state import Claim, Doc, Proc, Settling

if TYPE_CHECKING:
    from tests.model.state import State

NAMES = [
    "iceberg, main is set back",
    "iceberg, snapshots are expired",
    "iceberg, marks are unset",
    "iceberg, days go by",
    "iceberg, the table is dropped, and registered again",
    "iceberg, stands still beyond its grace",
    "iceberg, two attempts, one retry",
]


@dataclass(frozen=True)
class Scene:
    """A state in which a process begins to settle, with all other processes stopped."""

    state: State
    commit_point: CommitPoint

    @classmethod
    def of(cls, state: State, who: int, commit_point: CommitPoint) -> Scene:
        settling, doc = state.procs[who].settling, state.doc
        assert settling is not None
        assert doc is not None
        settler = Proc("S1", settling=settling._replace(then="done", failed="dead", cleans_later=False, by_me=False))
        quiet = state._replace(
            procs=tuple(settler if other == OPERATOR else Proc("dead") for other in range(len(state.procs))),
            air=(),
            faults=0,
            foreign=0,
            markers=(True,) * 3,
            expired=(True,) * 3,
            clocks=tuple(2 if clock == 2 else 0 for clock in state.clocks),
            doc=doc._replace(etag=1),
            gates=Setting().start().gates,
            table=state.table._replace(taken=False),
            gap=False,
        )
        return cls(quiet, commit_point)


@pytest.mark.parametrize(
    "setting", [pytest.param(one, id=name) for name, one in both_commit_points({n: SCENARIOS[n] for n in NAMES})]
)
def test_the_code_settles_as_the_model_does(setting: IcebergSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    """From every state in which a settle begins: the same fence, document and trace, and the same unknown outcomes."""
    point = setting.commit_point
    found = scenes(IcebergModel(setting), lambda state, who: Scene.of(state, who, point))

    assert found
    for scene in found:
        alone = IcebergSetting(commit_point=scene.commit_point)
        settling, claims = scene.state.procs[OPERATOR].settling, alone.traced(scene.state)
        assert settling is not None
        world = Materialised(scene.state, scene.commit_point)
        monkeypatch.setattr("safewriter.tables.iceberg.catalogs.configured", lambda *_: {"type": "rest"})
        monkeypatch.setattr("safewriter.tables.iceberg.catalogs.open_pointer", lambda *_, one=world.pointer: one)
        assert world.traced() == (None if claims is None else len(claims)), scene
        told = world.settled(settling)
        assert (told, world.fences(), world.doc()) == expected(settle_alone(IcebergModel(alone), scene.state)), scene


def test_a_publication_that_lands_before_the_fence_is_found_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if main was set back to the snapshot that the settler has read, so that the fence still lands."""
    doc = Doc(Status.IN_PROGRESS, (Claim(0, 0),))
    world = Materialised(IcebergSetting().start()._replace(doc=doc), CommitPoint.WRITE)
    world.pointer.late = world.mark(0)
    monkeypatch.setattr("safewriter.tables.iceberg.catalogs.configured", lambda *_: {"type": "rest"})
    monkeypatch.setattr("safewriter.tables.iceberg.catalogs.open_pointer", lambda *_: world.pointer)

    assert world.settled(Settling(Cause.RETRY, 0, nothing_sent=False, quiet=-1, then="done", failed="dead"))
    assert world.doc()[:3] == ("committed", 1, True)


def expected(after: State) -> Any:
    doc = after.doc
    assert doc is not None
    clean = tuple(claim.cleaned for claim in doc.claims)
    told = doc.status.value, doc.epoch, doc.named, clean
    return after.procs[OPERATOR].at == "done", after.table.fences, told
