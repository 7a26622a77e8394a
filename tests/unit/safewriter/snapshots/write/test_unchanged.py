"""An incremental build takes over shards only of a snapshot that it can read, with digests of rows and whole files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.row_digest import ROWS_DIGEST
from safewriter.snapshots.write.unchanged import check_comparable, earlier_shards
from safewriter.snapshots.write.values import binary_col, callable_encoder, json_cols
from tests.support.snapshots import PREFIX, build
from tests.unit.safewriter.snapshots.conftest import ROWS

if TYPE_CHECKING:
    from safewriter.snapshots.format.current import ManifestAt
    from tests.unit.safewriter.snapshots.conftest import World

CONFIG = WriteConfig(s3_prefix=PREFIX, num_dbs=8, incremental=True)


@pytest.fixture
def current(world: World, monkeypatch: pytest.MonkeyPatch) -> ManifestAt:
    """A snapshot of which all shards but the first have digests."""
    monkeypatch.setattr("safewriter.objects.s3.open_store", world.bucket.opened)
    found = build(world.folder, ROWS, "first", created=world.now)
    shards = [replace(shard, writer_info={ROWS_DIGEST: f"{shard.db_id}"}) for shard in found.shards[1:]]
    ref = world.publisher.publish(replace(found, shards=(found.shards[0], *shards)), world.publisher.base())
    return world.source.named(ref)


def test_shards_with_a_digest_may_be_taken_over(world: World, current: ManifestAt) -> None:
    """Those that are not there any more, or are shorter, are written again."""
    shards = world.source.manifest(current.ref).shards
    assert list(earlier_shards(CONFIG, current).values()) == list(shards[1:])
    gone, short = (shard.db_url.removeprefix(world.folder.uri("")) + "/shard.db" for shard in shards[1:3])
    world.folder.delete(gone)
    world.folder.put(short, b"short")
    assert list(earlier_shards(CONFIG, current)) == [shard.db_id for shard in shards[3:]]


def test_other_builds_take_over_nothing(current: ManifestAt) -> None:
    """One that is not incremental, and the first one."""
    assert earlier_shards(replace(CONFIG, incremental=False), current) == {}
    assert earlier_shards(CONFIG, None) == {}


def test_a_snapshot_that_nobody_can_read_is_built_anew(
    world: World, current: ManifestAt, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why all shards are written."""
    assert earlier_shards(CONFIG, replace(current, sha256="0" * 64)) == {}
    assert "somebody has changed the object" in caplog.text
    world.folder.delete(current.ref.removeprefix(world.folder.uri("")))
    assert earlier_shards(CONFIG, current) == {}


def test_values_that_a_function_makes_cannot_be_compared() -> None:
    """It may make others of the same columns; and a database of the caller's own has no digest."""
    check_comparable(CONFIG, binary_col("v"))
    check_comparable(CONFIG, json_cols())
    check_comparable(replace(CONFIG, incremental=False), callable_encoder(str))
    with pytest.raises(ConfigValidationError, match="binary_col or json_cols"):
        check_comparable(CONFIG, callable_encoder(str))
    own: Any = object()
    with pytest.raises(ConfigValidationError, match="leave adapter_factory out"):
        check_comparable(replace(CONFIG, adapter_factory=own), binary_col("v"))
