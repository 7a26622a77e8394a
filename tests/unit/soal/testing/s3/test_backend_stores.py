"""The emulator gives each S3 a moto store of its own, and a reset frees the memory of its objects."""

from __future__ import annotations

import moto.s3.models
from moto.s3.models import FakeKey

from soal.testing.s3.backend import Store

ACCOUNT = "123456789012"


def backend() -> moto.s3.models.S3Backend:
    """Return the backend that moto uses now."""
    return moto.s3.models.s3_backends[ACCOUNT]["aws"]


def test_within_the_block_moto_works_on_this_store() -> None:
    """Two stores have separate buckets of the same name; outside their blocks neither exists."""
    one, two = Store(), Store()
    with one.in_use():
        backend().create_bucket("lake", "us-east-1")
        backend().put_object("lake", "k", b"one")
        with two.in_use():
            assert "lake" not in backend().buckets
            backend().create_bucket("lake", "us-east-1")
        assert list(backend().buckets["lake"].keys) == ["k"]
    assert "lake" not in backend().buckets
    one.reset()
    two.reset()


def test_a_reset_gives_the_memory_of_its_own_objects_back() -> None:
    """Moto lists every object for ever; a reset removes only this store's objects from that list."""
    ours, others = Store(), Store()
    for store in (ours, others):
        with store.in_use():
            backend().create_bucket("lake", "us-east-1")
            backend().put_object("lake", "k", b"1")
    tracked: list[object] = FakeKey.instances_tracked  # type: ignore[attr-defined]
    before = len(tracked)
    ours.reset()
    assert len(tracked) == before - 1
    with others.in_use():
        kept = backend().get_object("lake", "k")
        assert kept is not None
        assert kept.value == b"1"
    others.reset()
