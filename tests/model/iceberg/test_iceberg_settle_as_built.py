from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.model.engine import explore
from tests.model.iceberg.materialised import Materialised
from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.scenarios import SCENARIOS
from tests.model.iceberg.setting import IcebergSetting
from tests.model.scenarios import both_commit_points
from tests.model.setting import OPERATOR, Setting
from tests.model.state import Proc

if TYPE_CHECKING:
    from collections.abc import Iterator

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
STEPS_MAX = 100


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

    def in_the_model(self) -> State:
        """Let the model settle, with nobody in between."""
        model, state = IcebergModel(IcebergSetting(commit_point=self.commit_point)), self.state
        for _ in range(STEPS_MAX):
            if state.procs[OPERATOR].at in ("done", "dead"):
                return state
            state = next(iter(model.steps(state, OPERATOR)))[1]
        raise AssertionError


class Watched(IcebergModel):
    """Remembers every state in which a settle begins."""

    scenes: set[Scene]

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for who, proc in enumerate(state.procs):
            if proc.at == "S1" and state.doc is not None:
                self.scenes.add(Scene.of(state, who, self.setting.commit_point))
        yield from super().moves(state)


def scenes(setting: IcebergSetting) -> list[Scene]:
    model = Watched(setting)
    object.__setattr__(model, "scenes", set())
    explore(model, states_max=100_000)
    return list(model.scenes)


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(one, id=name, marks=pytest.mark.matrix if name in MATRIX else ())
        for name, one in both_commit_points({n: SCENARIOS[n] for n in NAMES})
    ],
)
def test_the_code_settles_as_the_model_does(setting: IcebergSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    """From every state in which somebody begins to settle: the same table, document, files, and the same doubt."""
    found = scenes(setting)

    assert found
    for scene in found:
        settling = scene.state.procs[OPERATOR].settling
        assert settling is not None
        world = Materialised(scene.state, scene.commit_point)
        monkeypatch.setattr("safewriter.tables.iceberg.catalog._catalog", lambda *_, one=world.catalog: one)
        told = world.settled(settling)
        after = scene.in_the_model()
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
