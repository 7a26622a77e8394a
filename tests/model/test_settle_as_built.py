from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.model.engine import explore
from tests.model.materialised import Materialised
from tests.model.model import Model
from tests.model.scenarios import SCENARIOS, both_commit_points
from tests.model.setting import OPERATOR, Setting
from tests.model.state import Proc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.state import CommitPoint
    from tests.model.state import State

NAMES = [
    "new table",
    "killed, settled from outside",
    "two attempts",
    "supervised",
    "VACUUM without retention",
    "stands still beyond its grace",
]
STEPS_MAX = 100


@dataclass(frozen=True)
class Scene:
    """A state in which somebody begins to settle; what others would do next does not belong to it."""

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

    def in_the_model(self) -> State:
        """Let the model settle, with nobody in between."""
        model, state = Model(Setting(commit_point=self.commit_point)), self.state
        for _ in range(STEPS_MAX):
            if state.procs[OPERATOR].at in ("done", "dead"):
                return state
            state = next(iter(model.steps(state, OPERATOR)))[1]
        raise AssertionError


class Watched(Model):
    """Remembers every state in which a settle begins."""

    scenes: set[Scene]

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for who, proc in enumerate(state.procs):
            if proc.at == "S1" and state.doc is not None:
                self.scenes.add(Scene.of(state, who, self.setting.commit_point))
        yield from super().moves(state)


def scenes(setting: Setting) -> list[Scene]:
    model = Watched(setting)
    object.__setattr__(model, "scenes", set())
    explore(model, states_max=100_000)
    return list(model.scenes)


@pytest.mark.parametrize(
    "setting", [pytest.param(one, id=name) for name, one in both_commit_points({n: SCENARIOS[n] for n in NAMES})]
)
def test_the_code_settles_as_the_model_does(setting: Setting) -> None:
    """From every state in which somebody begins to settle: the same log, document, files, and the same doubt."""
    found = scenes(setting)

    assert found
    for scene in found:
        before = scene.state.procs[OPERATOR].settling
        assert before is not None
        after = scene.in_the_model()
        world = Materialised(scene.state, scene.commit_point)
        told = world.settled(before.cause, before)
        assert (told, world.entries(), world.doc(), world.files()) == expected(after), scene


def expected(after: State) -> Any:
    doc = after.doc
    assert doc is not None
    told = after.procs[OPERATOR].at == "done"
    files = tuple(after.files[claim.attempt] in ("there", "stray") for claim in doc.claims)
    return told, after.log, (doc.status.value, doc.epoch, doc.named, tuple(c.cleaned for c in doc.claims)), files
