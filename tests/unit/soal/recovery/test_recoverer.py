"""`soal recover` settles dead writes one by one, leaves living ones alone, and reports each that it cannot decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import PreconditionFailed, StoreError
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.one_write import Action, Inspection
from safewriter.settle.recovery import Cause
from soal import recovery
from soal.recovery import Recovered, Recoverer, marked_keys
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.settle.recovery import Recovery


def recover(world: World, *, dry_run: bool = False, until_ms: int = 2**60) -> Recovered:
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=until_ms)
    found = recoverer.settle(world.key, dry_run=dry_run)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("commit_point", "landed", "status"),
    [
        (CommitPoint.WRITE, False, "rolled_back"),
        (CommitPoint.WRITE, True, "committed"),
        (CommitPoint.SUCCESS, True, "rolled_back"),
    ],
)
def test_a_dead_write_is_settled_and_a_dry_run_says_the_same(
    commit_point: CommitPoint, status: str, *, landed: bool
) -> None:
    """The dry run settles on overlays, changes nothing, and names each request."""
    world = World(commit_point)
    job = world.job().begin()
    if landed:
        job.land()
    world.owner_dies()
    before = world.bucket.contents() | world.lake.contents()

    dry = recover(world, dry_run=True)

    assert (dry.before, dry.status, dry.action) == ("in_progress", status, "settled")
    assert f"PUT s3://checkpoints/checkpoints/{world.key}.json" in dry.changes
    assert world.bucket.contents() | world.lake.contents() == before
    wet = recover(world)
    assert (wet.before, wet.status, wet.action, wet.changes) == ("in_progress", status, "settled", ())
    assert wet.reason == dry.reason
    assert world.document.attempt.settled_by == Cause.OPERATOR.value
    check(world)


def test_what_lives_is_left_alone() -> None:
    """A live write is reported as alive, and its document is unchanged."""
    world = World()
    world.job().begin()
    before = world.bucket.contents()
    assert recover(world).action == "alive"
    assert world.bucket.contents() == before


def test_a_retry_that_has_claimed_meanwhile_is_left_alone() -> None:
    """A retry that claims the write after the look is left alone: only the dead attempt was judged."""
    world = World()
    world.job().begin()
    world.owner_dies()
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=2**60)
    get = world.bucket.get

    def overtaken(key: str, *, max_bytes: int | None = None) -> object:
        found = get(key, max_bytes=max_bytes)
        if key.startswith("leases/"):  # between the look and the settling
            world.bucket.get = get  # type: ignore[method-assign]
            world.settle(Cause.RETRY)
            world.job().begin()
        return found

    world.bucket.get = overtaken  # type: ignore[method-assign,assignment]
    recoverer.settle(world.key, dry_run=False)
    assert (world.document.status, world.document.epoch) == (Status.IN_PROGRESS, 2)


def test_a_settled_write_is_cleaned_once_more() -> None:
    """A settled write is cleaned up once nothing of it can still arrive."""
    world = World()
    job = world.job().begin()
    world.settle(Cause.KILLED)
    assert recover(world).action == "cleaned"
    assert marked_keys(world.bucket) == (world.key,)
    world.grace_passes()
    assert recover(world).action == "cleaned"
    assert (recover(world).action, marked_keys(world.bucket)) == ("none", ())
    assert job.leftover not in world.lake.contents()


def test_what_the_log_cannot_tell_is_unknown_and_stays_so() -> None:
    """A write that the log cannot prove stays unknown, with a message for the operator."""
    world = World()
    world.job().begin()
    world.append_foreign()
    world.append_foreign()
    world.hide(key_of(2))
    world.owner_dies()
    found = recover(world)
    assert (found.status, found.action) == ("unknown", "failed")
    assert found.reason is not None
    assert "set the verdict by hand" in found.reason


def test_time_that_runs_out_leaves_it_open() -> None:
    """If time runs out, the write stays open, and the next run continues."""
    world = World()
    world.job().begin()
    world.owner_dies()
    assert recover(world, until_ms=0).action == "failed"
    assert world.document.status is Status.IN_PROGRESS


def test_of_a_write_that_was_announced_and_never_claimed_the_table_tells() -> None:
    """A write with only a marker needs no verdict if the table holds nothing of it; its marker goes after hours."""
    world = World()
    world.job().claimer.announce()
    assert marked_keys(world.bucket) == (world.key,)
    found = recover(world)
    assert (found.run_key, found.before, found.status, found.action) == ("run", "announced", "announced", "alive")
    world.grace_passes()

    found = recover(world)
    assert (found.status, found.action, found.reason) == ("announced", "unclaimed", "the table holds nothing of it")
    world.sleep(25 * 3600)

    (marker,) = world.bucket.contents()
    assert recover(world, dry_run=True).changes == (f"DELETE {world.bucket.uri(marker)}",)
    assert marked_keys(world.bucket) == (world.key,)
    assert recover(world).status == "announced"
    assert marked_keys(world.bucket) == ()


def test_a_write_whose_document_has_expired_is_told_to_a_person() -> None:
    """A write in the table whose document has expired is not settled; the message tells the operator what to do."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()
    world.grace_passes()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    found = recover(world)
    assert (found.status, found.action) == ("announced", "failed")
    assert found.reason is not None
    assert f"soal recover --write {world.key} --verdict" in found.reason


def test_of_a_key_without_marker_and_document_nothing_is_known() -> None:
    """A key without marker and document gives no result."""
    world = World()
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=2**60)
    assert recoverer.settle(world.key, dry_run=False) is None


@pytest.mark.parametrize("end", [Action.FAILED, Action.UNCLEAN])
def test_writes_that_take_all_time_keep_no_other_from_its_share(monkeypatch: pytest.MonkeyPatch, end: Action) -> None:
    """Whoever puts false documents keeps no operator from settling the others; results come in the keys' order."""
    world = World()
    tried: list[str] = []

    def settle_one(_: Checkpoints, recovery: Recovery, key: str, *__: object) -> Inspection:
        tried.append(key)
        for _second in range(10**6 if key.startswith("endless") else 2):
            if not recovery.settling.may_go_on():
                return Inspection(end, "out of time")
            world.sleep(1)
        return Inspection(Action.SETTLED)

    monkeypatch.setattr(recovery, "settle_one", settle_one)
    monkeypatch.setattr("random.sample", lambda keys, _: list(keys))
    until_ms = world.clock() + 300_000
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=until_ms, threads=1)
    endless = [f"endless-{number:02}" for number in range(20)]

    found = recoverer.settle_all([*endless, "honest"], dry_run=False)

    assert [(one.write_key, one.action) for one in found] == [
        *((key, end.value) for key in endless),
        ("honest", "settled"),
    ]
    assert tried == [*endless, "honest", "endless-00"]


def test_writes_are_taken_at_random_and_told_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody chooses which write is last; a key of no write gives no result."""
    world = World()
    tried: list[str] = []

    def settle_one(_: Checkpoints, __: Recovery, key: str, *___: object) -> Inspection:
        tried.append(key)
        return Inspection(Action.NONE if key == "none" else Action.SETTLED)

    monkeypatch.setattr(recovery, "settle_one", settle_one)
    monkeypatch.setattr("random.sample", lambda keys, _: list(reversed(keys)))
    recoverer = Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=2**60, threads=1)

    found = recoverer.settle_all(["a", "none", "b"], dry_run=False)

    assert tried == ["b", "none", "a"]
    assert [one.write_key for one in found] == ["a", "b"]


def test_old_leases_go() -> None:
    """The command deletes old leases, where no sweeper does."""
    world = World()
    world.checkpoints.renew_lease("sw-old", "1")
    world.sleep(25 * 3600)
    world.checkpoints.renew_lease("sw-new", "2")
    Recoverer(world.bucket, lambda _: world.lake, world.clock, audit_log=True, until_ms=2**60).forget_leases()
    assert [key for key in world.bucket.contents() if key.startswith("leases/")] == ["leases/sw-new/2"]


@pytest.mark.parametrize("damaged", ["document", "marker"])
def test_what_cannot_be_read_is_told_and_left(damaged: str) -> None:
    """An unreadable write is reported and left to the operator; the next one is settled."""
    world = World()
    job = world.job()
    job.claimer.announce()
    names = {"document": f"checkpoints/{world.key}.json", "marker": f"open/{world.key}/{job.attempt.nonce}"}
    world.bucket.put(names[damaged], b"no JSON")
    world.grace_passes()
    before = world.bucket.contents()

    found = recover(world)

    assert (found.run_key, found.table, found.before, found.status) == (None, None, "unread", "unread")
    assert found.action == "unreadable"
    assert str(found.reason).startswith(world.bucket.uri(names[damaged]))
    assert world.bucket.contents() == before


@pytest.mark.parametrize(("error", "reason"), [(StoreError("SlowDown"), "SlowDown"), (KeyError("x"), "KeyError('x')")])
def test_whatever_one_write_meets_is_told(error: Exception, reason: str) -> None:
    """An exception at one write is reported, and the command continues with the others."""
    world = World()
    world.job().begin()

    def get(_: str, **__: int) -> None:
        raise error

    world.bucket.get = get  # type: ignore[method-assign,assignment]

    found = recover(world)

    assert (found.action, found.reason, found.status) == ("failed", reason, "unread")


def test_a_marker_beside_a_settled_write_goes_after_a_day() -> None:
    """Until then its attempt may still claim."""
    world = World()
    assert world.job().run()
    world.grace_passes()
    recover(world)
    world.job().claimer.announce()
    assert (recover(world).action, len(marked_keys(world.bucket))) == ("unclaimed", 1)
    world.sleep(25 * 3600)
    assert recover(world, dry_run=True).action == "none"
    assert len(marked_keys(world.bucket)) == 1
    assert (recover(world).action, marked_keys(world.bucket)) == ("none", ())


def test_a_claim_that_comes_first_is_told_with_its_run() -> None:
    """A claim that overtakes the look is reported with its run."""
    world = World()
    world.job().begin().land()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    world.grace_passes()
    world.bucket.create = refused  # type: ignore[method-assign]

    found = recover(world)

    assert (found.run_key, found.before, found.status, found.action) == ("run", "announced", "announced", "alive")


def refused(key: str, body: bytes, *, tag: str = "") -> str:
    """Raise as if another client had created the object first."""
    raise PreconditionFailed(key)
