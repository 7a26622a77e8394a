"""Each write has a share of a sweep's time, and what is left is for those that ran out of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from safewriter.settle import sweeper
from safewriter.settle.one_write import Action, Inspection
from safewriter.settle.sweeper import Look, Sweeper
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.settle.recovery import Recovery

SHARE_MS = 10_000


class Slow:
    """A sweep by one thread over writes of which each takes some time, if it gets that; `order`: how they are taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, took_ms: dict[str, int], end: Action = Action.FAILED) -> None:
        self.world = World()
        self.took_ms = took_ms
        self.end = end
        self.tried: list[str] = []
        self.told: list[Look] = []
        for key in took_ms:
            self.world.bucket.put(f"open/{key}/n", b"{}")
            self.world.sleep(1)
        monkeypatch.setattr(sweeper, "settle_one", self._settle)

    def _settle(self, _: Checkpoints, recovery: Recovery, key: str, *__: object) -> Inspection:
        self.tried.append(key)
        for _second in range(self.took_ms[key] // 1000):
            if not recovery.settling.may_go_on():
                return Inspection(self.end, "out of time")
            self.world.sleep(1)
        return Inspection(Action.SETTLED)

    def sweep(self, whole_ms: int, share_ms: int = SHARE_MS) -> dict[str, Action]:
        until_ms, draws = self.world.clock() + whole_ms, iter((0.0, *(n / 100 for n in range(len(self.took_ms)))))
        found = Sweeper(
            self.world.checkpoints,
            self.world.recovery(),
            self.world.clock,
            lambda: self.world.clock() < until_ms,
            draw=lambda: next(draws),
            threads=1,
            share_ms=share_ms,
            on_look=self.told.append,
        ).sweep()
        told = (dataclasses.replace(look, problem=None) for look in self.told)
        assert sorted(found.looks, key=str) == sorted(told, key=str), "each result is told once, with its problem"
        return {look.write_key: look.action for look in found.looks}


@pytest.mark.parametrize("end", [Action.FAILED, Action.UNCLEAN])
def test_writes_that_take_all_time_keep_no_other_from_its_share(monkeypatch: pytest.MonkeyPatch, end: Action) -> None:
    """Sixteen writes that never end come first, and the last one is settled all the same."""
    endless = {f"sw-{n:02}": 10**9 for n in range(16)}
    slow = Slow(monkeypatch, {**endless, "sw-last": 2000}, end)
    found = slow.sweep(240_000)
    assert found.pop("sw-last") is Action.SETTLED
    assert set(found.values()) == {end}
    assert set(found) == set(endless)


@pytest.mark.parametrize(
    ("end", "share_ms"), [(Action.FAILED, SHARE_MS), (Action.UNCLEAN, SHARE_MS), (Action.FAILED, 2000)]
)
def test_a_write_that_ran_out_of_its_share_has_all_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, end: Action, share_ms: int
) -> None:
    """It is tried again after all others, and settled."""
    slow = Slow(monkeypatch, {"sw-long": 10 * share_ms // 3, "sw-short": 1000}, end)
    assert slow.sweep(240_000, share_ms) == {"sw-long": Action.SETTLED, "sw-short": Action.SETTLED}
    assert slow.tried == ["sw-long", "sw-short", "sw-long"]


def test_a_write_that_ends_within_its_share_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the sweep's time is over meanwhile, and the next write is left."""
    slow = Slow(monkeypatch, {"sw-a": 9000, "sw-b": 9000, "sw-c": 9000})
    assert slow.sweep(15_000) == {"sw-a": Action.SETTLED, "sw-b": Action.FAILED, "sw-c": Action.LEFT}
    assert slow.tried == ["sw-a", "sw-b"]


def test_the_reason_of_a_write_for_which_no_time_is_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that ran out of its share is no write that nobody has looked at."""
    slow = Slow(monkeypatch, {"sw-a": 10**9, "sw-b": 6000})
    assert slow.sweep(16_000) == {"sw-a": Action.FAILED, "sw-b": Action.SETTLED}
    assert [look.problem for look in slow.told] == [None, "out of time"]


def test_writes_are_taken_in_an_order_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who announces writes, at whatever time, chooses which write is last."""
    slow = Slow(monkeypatch, {"sw-a": 1000, "sw-b": 1000, "sw-c": 1000})
    draws = iter((0.0, 0.5, 0.9, 0.1))
    world = slow.world
    Sweeper(world.checkpoints, world.recovery(), world.clock, lambda: True, draw=lambda: next(draws), threads=1).sweep()
    assert slow.tried == ["sw-c", "sw-a", "sw-b"]
