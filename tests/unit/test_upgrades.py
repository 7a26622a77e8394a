"""An upgrade or a rollback while runs are open: what another version of the function has left in the checkpoint bucket.

`documents/N` holds documents as version N of their schema writes them. They are never made again: a change after which
these tests fail needs a new version of the schema, and code that reads both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from handler.runs.record import RunRecord
from handler.runs.store import UnreadableRecordError
from safewriter.errors import UnreadableCheckpointError
from safewriter.record.document import Checkpoint, Status
from safewriter.record.marker import Marker
from safewriter.settle.one_write import Action
from tests.unit.handler.runs.test_store import Bench
from tests.unit.safewriter.settle.sweeps import sweep
from tests.unit.safewriter.world import World

OLD = Path(__file__).with_name("documents") / "1"


def old(name: str) -> dict[str, Any]:
    return dict(json.loads((OLD / f"{name}.json").read_text(encoding="utf-8")))


def _within(written: Any, document: Any) -> Any:
    """Return the written document's fields that the old document has, also in lists and objects."""
    if isinstance(document, dict):
        return {key: _within(written[key], value) for key, value in document.items()}
    if isinstance(document, list):
        return [_within(*pair) for pair in zip(written, document, strict=True)]
    return written


def put(world: World, **changes: Any) -> str:
    """Put document and marker of an attempt of another version; return the document's key."""
    document, marker = old("checkpoint"), old("marker")
    key = f"checkpoints/{document['write_key']}.json"
    world.bucket.put(key, json.dumps({**document, **changes}).encode())
    world.bucket.put(f"open/{marker['write_key']}/{marker['nonce']}", json.dumps({**marker, **changes}).encode())
    return key


@pytest.mark.parametrize("more", [{}, {"a_field_of_tomorrow": 1}], ids=["as it was", "with a new field"])
def test_what_was_written_before_is_read(more: dict[str, Any]) -> None:
    """Every field of an old document is read under its name; an additional field of a later version is ignored."""
    for document, body in (
        (old("checkpoint"), Checkpoint.from_bytes(json.dumps({**old("checkpoint"), **more}).encode()).to_bytes()),
        (old("marker"), Marker.from_bytes(json.dumps({**old("marker"), **more}).encode()).to_bytes()),
        (old("run"), RunRecord.model_validate({**old("run"), **more}).model_dump_json(by_alias=True).encode()),
    ):
        expected = document | ({"nonce": ANY} if "nonce" in document else {})
        assert _within(json.loads(body), document) == expected


def test_a_write_that_an_older_function_has_left_open_is_settled() -> None:
    """This version's sweeper settles a write that an older function left open, and the retry takes the next epoch."""
    world = World()
    put(world)
    world.grace_passes()
    (look,) = sweep(world).looks
    assert (look.action, look.status) == (Action.SETTLED, Status.ROLLED_BACK)
    job = world.job().begin()
    assert job.document.epoch == 2
    assert job.land().success()


def test_a_run_of_an_older_function_goes_on() -> None:
    """This version makes the next attempt of an older function's run."""
    bench = Bench()
    first = bench.begin("one")
    bench.store.put(bench.key(), json.dumps(old("run")).encode())
    bench.time.now_ms += 30_000
    assert bench.begin("two").record.attempt == first.record.attempt + 1


@pytest.mark.parametrize("status", Status)
def test_a_write_of_a_newer_function_is_left_to_it(status: Status) -> None:
    """After a rollback a retry of this version ends before it writes, and changes nothing in the bucket."""
    world = World()
    put(world, schema_version=2, status=status)
    world.grace_passes()
    before, log = world.bucket.contents(), world.lake.contents()
    _, job = world.job(), world.job()
    with pytest.raises(UnreadableCheckpointError, match="schema version 2"):
        job.claim()
    world.checkpoints.unmark(world.key, job.attempt.nonce)  # as the block does that could not open
    assert (world.bucket.contents(), world.lake.contents()) == (before, log)
    assert [look.action for look in sweep(world).looks] == [Action.UNREADABLE]
    assert (world.bucket.contents(), world.lake.contents()) == (before, log)


def test_a_run_of_a_newer_function_is_left_to_it() -> None:
    """After a rollback the record of a newer run is not overwritten, and nothing starts under its key."""
    bench = Bench()
    bench.begin("one")
    body = json.dumps({**old("run"), "schemaVersion": 2}).encode()
    bench.store.put(bench.key(), body)
    with pytest.raises(UnreadableRecordError, match="this version"):
        bench.begin("two")
    stored = bench.store.get(bench.key())
    assert stored is not None
    assert stored.body == body
