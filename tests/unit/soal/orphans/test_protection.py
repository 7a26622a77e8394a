"""`soal orphans` protects the files of open, unclaimed and unreadable writes, by marker, document and prefix."""

from __future__ import annotations

from datetime import timedelta

import pytest

from safewriter.objects.location import Location
from safewriter.settle.recovery import Cause
from soal.orphans.protection import Attempts, FilePrefix, prefix_of
from tests.unit.safewriter.world import World
from tests.unit.soal.orphans.bench import LOCATION

OTHER_TABLE = "s3://lake/other"


def attempts(world: World) -> Attempts:
    return Attempts(world.bucket, LOCATION)


def file_prefix(world: World) -> FilePrefix:
    found = prefix_of(f"{world.document.attempt.prefix}part-0.parquet")
    assert found is not None
    return found


def change(world: World, start: str, old: bytes, new: bytes) -> None:
    """Replace bytes in the objects under a prefix."""
    for key, body in world.bucket.contents().items():
        if key.startswith(start):
            assert old in body
            world.bucket.put(key, body.replace(old, new))


@pytest.mark.parametrize("dies", [False, True])
def test_an_open_write_protects_what_is_younger_than_its_marker(dies: object) -> None:
    """Files younger than the marker are protected, even of a dead owner: its commit may land until it is settled."""
    world = World()
    began = world.now()
    world.job().begin()
    if dies:
        world.owner_dies()
    found = attempts(world)
    assert [(one.run_key, one.since) for one in found.open_writes] == [("run", began)]
    assert found.protects(began)
    assert found.protects(world.now())
    assert not found.protects(began - timedelta(minutes=2))


def test_a_clock_that_is_a_little_off_is_allowed_for() -> None:
    """A small clock difference is tolerated: S3's dates have whole seconds."""
    world = World()
    began = world.now()
    world.job().begin()
    assert attempts(world).protects(began - timedelta(seconds=1))


def test_the_first_marker_of_a_write_counts() -> None:
    """The first marker counts: a retry has its own marker, but the dead attempt before it had files, too."""
    world = World()
    began = world.now()
    world.job().begin()
    world.owner_dies()
    world.job().claim()
    assert attempts(world).protected_from == began


def test_a_settled_write_protects_nothing() -> None:
    """A settled write protects nothing: its commit is in the log or will never land."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.settle(Cause.OPERATOR)
    assert attempts(world).open_writes == ()
    assert not attempts(world).protects(world.now())


def test_an_open_write_of_another_table_protects_nothing_here() -> None:
    """An open write of another table in the same bucket protects nothing."""
    world = World(table=OTHER_TABLE)
    world.job().begin()
    assert attempts(world).open_writes == ()


def test_an_attempt_that_has_not_claimed_yet_is_open() -> None:
    """An attempt before its claim is open; its marker names the table."""
    world = World()
    world.job().claimer.announce()
    assert [one.run_key for one in attempts(world).open_writes] == ["run"]
    other = World(table=OTHER_TABLE)
    other.job().claimer.announce()
    assert attempts(other).open_writes == ()


@pytest.mark.parametrize("start", ["checkpoints/", "open/"])
def test_a_write_that_cannot_be_read_may_be_of_this_table(start: str) -> None:
    """A write with an unreadable document or marker counts as open, for any table."""
    world = World()
    job = world.job()
    if start == "open/":
        job.claimer.announce()
    else:
        job.begin()
    change(world, start, b'"schema_version": 1', b'"schema_version": 99')
    assert [one.run_key for one in attempts(world).open_writes] == [None]


def test_the_files_of_an_attempt_may_go_when_its_write_is_settled_or_claimed_again() -> None:
    """An attempt's files may be deleted once its write is settled or claimed again, not while it is open."""
    world = World()
    world.job().begin()
    first = file_prefix(world)
    assert "settle it" in str(attempts(world).prefix_obstacle(first))
    world.owner_dies()
    world.job().claim()
    second = file_prefix(world)
    assert attempts(world).prefix_obstacle(first) is None
    assert "settle it" in str(attempts(world).prefix_obstacle(second))
    world.owner_dies()
    world.settle(Cause.OPERATOR)
    assert attempts(world).prefix_obstacle(second) is None


def test_a_prefix_of_which_nothing_is_known_is_an_obstacle() -> None:
    """An unknown prefix is held: no document, another table's, a later epoch, or an unreadable document."""
    world = World()
    world.job().begin()
    own = file_prefix(world)
    world.owner_dies()
    world.settle(Cause.OPERATOR)
    assert attempts(world).prefix_obstacle(FilePrefix(own.write, own.epoch + 1, own.nonce)) is not None
    assert "no document" in str(attempts(world).prefix_obstacle(FilePrefix("sw-000000000000", 1, own.nonce)))
    change(world, "checkpoints/", b'"schema_version": 1', b'"schema_version": 99')
    assert "no document" in str(attempts(world).prefix_obstacle(own))
    change(world, "checkpoints/", b'"schema_version": 99', b'"schema_version": 1')
    assert attempts(world).prefix_obstacle(own) is None
    assert "no document" in str(Attempts(world.bucket, Location.parse(OTHER_TABLE)).prefix_obstacle(own))
