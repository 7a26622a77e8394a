"""The clean-up of snapshots finds by the builds' records which are alive and where each writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from safewriter.objects import StoreError
from safewriter.snapshots.format.current import stamp
from safewriter.snapshots.keep.build_records import recorded_builds
from tests.support.memory_store import MemoryObjectStore

WRITTEN = datetime(2026, 11, 20, tzinfo=UTC)
KEY = f"runs/{stamp(WRITTEN)}_run_id=nightly_2_0123abcd/run.yaml"


def record(skew: timedelta = timedelta(), **changes: Any) -> bytes:
    """A build's record; its writer's clock is ahead by `skew`."""
    return json.dumps(
        {
            "format_version": 1,
            "run_id": "nightly_2",
            "writer_type": "spark",
            "status": "running",
            "started_at": stamp(WRITTEN + skew),
            "updated_at": stamp(WRITTEN + skew),
            "lease_expires_at": stamp(WRITTEN + skew + timedelta(minutes=10)),
            "s3_prefix": "s3://memory/kv",
            "shard_prefix": "parts",
            "db_path_template": "db={db_id:05d}",
            "manifest_ref": None,
            "error_type": None,
            "error_message": None,
            **changes,
        }
    ).encode()


@pytest.mark.parametrize(
    ("body", "after", "lives"),
    [
        (record(), timedelta(minutes=9), True),
        (record(), timedelta(minutes=11), False),
        (record(skew=timedelta(hours=-5)), timedelta(minutes=9), True),
        (record(skew=timedelta(hours=5)), timedelta(hours=5), True),
        (record(status="succeeded"), timedelta(minutes=1), False),
        (record(status="failed"), timedelta(minutes=1), False),
        (record(status="paused"), timedelta(hours=25), True),
        (record(lease_expires_at=None), timedelta(hours=25), True),
        (record()[:-20], timedelta(hours=25), True),
        (b"\xff", timedelta(hours=25), True),
        (b"[]", timedelta(hours=25), True),
        (b"{}", timedelta(hours=25), True),
        (record(shard_prefix="\ud800"), timedelta(hours=25), True),
        (record(updated_at="2026-11-20T00:00:00", lease_expires_at="2026-11-20T00:10:00"), timedelta(hours=1), False),
    ],
    ids=[
        *("lease", "expired", "slow clock", "fast clock", "succeeded", "failed", "another status", "no lease", "torn"),
        *("binary", "list", "empty", "no UTF-8", "no zone"),
    ],
)
def test_a_run_lives_while_its_lease_does(body: bytes, after: timedelta, *, lives: bool) -> None:
    """The later of the two clocks' ends counts; a run with an unreadable record counts as living."""
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, body)
    now = WRITTEN + after
    found = recorded_builds(store, "runs", now)
    assert found.living == (frozenset({"nightly_2"}) if lives else frozenset())


def test_records_say_where_builds_write_to() -> None:
    """The records of ended builds count, too; other objects are ignored."""
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, record(status="failed"))
    store.put("runs/readme", b"")
    store.put("runs2/x_run_id=other_t/run.yaml", record())
    found = recorded_builds(store, "runs", WRITTEN)
    assert (found.living, found.shard_prefixes) == (frozenset(), frozenset({"parts"}))


@pytest.mark.parametrize(
    ("status", "hours", "lives"),
    [("running", 0, True), ("running", 25, False), ("succeeded", 0, False), ("failed", 0, False)],
)
def test_a_record_in_yaml_counts_as_one_in_json(status: str, hours: int, *, lives: bool) -> None:
    """Other writers use YAML; an error's text of many lines sets no fields."""
    told = json.loads(record(status=status, error_message="a\nstatus: failed\n\tb" * 40, manifest_ref="x: y"))
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, yaml.safe_dump(told).encode())
    found = recorded_builds(store, "runs", WRITTEN + timedelta(hours=hours))
    assert found.unreadable == ()
    assert found.living == (frozenset({"nightly_2"}) if lives else frozenset())
    assert found.shard_prefixes == frozenset({"parts"})


def test_a_record_that_nobody_understands_is_told() -> None:
    """An operator has to look at it, since its run never counts as dead."""
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, b"[]")
    assert recorded_builds(store, "runs", WRITTEN).unreadable == (KEY,)


@pytest.mark.parametrize("prefix", ["a/b", "x" * 256, "..", "", 1, ["a"], {"a": "b"}])
def test_a_place_that_no_build_writes_to_is_looked_for_nowhere(prefix: object) -> None:
    """The record is reported as unreadable, and its prefix is not used."""
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, record(status="failed", shard_prefix=prefix))
    found = recorded_builds(store, "runs", WRITTEN)
    assert (found.shard_prefixes, found.unreadable) == (frozenset(), (KEY,))


def test_a_record_that_may_not_be_read_judges_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that may list but not read the records cannot clean up."""
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, record())

    def denied(_: str, **__: object) -> None:
        raise StoreError("GET: denied, or not there", denied=True)

    monkeypatch.setattr(store, "get", denied)
    with pytest.raises(StoreError, match="denied, or not there"):
        recorded_builds(store, "runs", WRITTEN)


def test_a_record_that_goes_meanwhile_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was listed, and is deleted before it is read."""
    store = MemoryObjectStore(now=lambda: WRITTEN)
    store.put(KEY, record())
    monkeypatch.setattr(store, "get", lambda _, **__: None)
    assert recorded_builds(store, "runs", WRITTEN).living == frozenset()
