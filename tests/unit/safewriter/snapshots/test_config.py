"""The configuration of a snapshot's build refuses impossible settings before anything is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.config import Duplicates, ManifestOptions, OutputOptions, WriteConfig
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.sharding import SHARDS_MAX, ShardingSpec, cel_sharding

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"num_dbs": None}, "give num_dbs, or sharding.max_keys_per_shard"),
        ({"sharding": ShardingSpec(max_keys_per_shard=5)}, "give num_dbs, or sharding.max_keys_per_shard"),
        ({"num_dbs": 0}, "num_dbs is 0"),
        ({"duplicates": Duplicates.LAST}, "give last_by, the column, with"),
        ({"last_by": "v"}, "give last_by, the column, with"),
        ({"s3_prefix": "s3://bucket"}, "names a whole bucket"),
        ({"s3_prefix": "gs://bucket/prefix"}, "s3_prefix"),
    ],
)
def test_a_build_that_cannot_be_is_refused_by_its_setting(changes: dict[str, Any], problem: str) -> None:
    """The constructor raises, so nothing is read."""
    with pytest.raises(ConfigValidationError, match=problem):
        WriteConfig(**{"num_dbs": 2, "s3_prefix": "s3://lake/p", **changes})


WRONG: dict[str, tuple[object, ...]] = {
    "num_dbs": (0, 1.5, "8", True, 2**33, 2**70),
    "s3_prefix": (None, 5, "", "s3://", b"s3://lake/p"),
    "key_encoding": ("u65be", None, 3),
    "duplicates": ("first", None),
    "last_by": (3,),
    "sharding": (None, "hash"),
    "output": (None,),
    "manifest": (None,),
    "shard_retry": (3,),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_mistyped_setting_is_refused_by_its_name(name: str, value: Any) -> None:
    """It raises the one error of configurations, and not one of Python's or later."""
    with pytest.raises(ConfigValidationError, match=f"^{name}"):
        WriteConfig(**{"num_dbs": 2, "s3_prefix": "s3://lake/p", name: value})


def test_a_choice_may_be_given_by_its_text() -> None:
    """As in a configuration that was read from a file."""
    config = WriteConfig(
        num_dbs=2,
        s3_prefix="s3://lake/p",
        key_encoding="utf8",  # type: ignore[arg-type]
        duplicates="last",  # type: ignore[arg-type]
        last_by="at",
    )
    assert (config.key_encoding, config.duplicates) == (KeyEncoding.UTF8, Duplicates.LAST)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"db_path_template": "db"}, "does not name {db_id}"),
        ({"db_path_template": "db={number}"}, "cannot be filled"),
        ({"db_path_template": "a/{db_id}"}, "not one path segment"),
        ({"shard_prefix": ".."}, "shard_prefix '..' is not one path segment"),
        ({"shard_prefix": ""}, "not one path segment"),
        ({"run_id": "a/b"}, "run_id"),
        ({"run_id": 5}, "run_id"),
        ({"db_path_template": None}, "db_path_template is None"),
    ],
)
def test_a_place_that_cannot_be_is_refused_by_its_setting(changes: dict[str, Any], problem: str) -> None:
    """Other readers must be able to read a shard's path."""
    with pytest.raises(ConfigValidationError, match=problem):
        OutputOptions(**changes)


@pytest.mark.parametrize(
    "value", [datetime(2026, 1, 1, tzinfo=UTC), float("nan"), {"b": {float("inf")}}, b"", {1: 2, "": 3}]
)
def test_a_field_of_the_manifest_that_json_has_not_is_refused(value: object) -> None:
    """It is refused at once, and not after the shards are written."""
    with pytest.raises(ConfigValidationError, match="custom_manifest_fields cannot be JSON"):
        ManifestOptions(custom_manifest_fields={"a": value})
    ManifestOptions(custom_manifest_fields={"a": [1, None, {"b": "c"}]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: WriteConfig(s3_prefix="s3://lake/p", num_dbs=SHARDS_MAX + 1),
        lambda: cel_sharding("key", {"key": "int"}, routing_values=range(SHARDS_MAX + 1)),
        lambda: cel_sharding("key", {f"c{n}": "int" for n in range(101)}),
        lambda: cel_sharding("key", {"c" * 257: "int"}),
    ],
)
def test_a_build_is_refused_that_no_reader_would_read(make: Callable[[], object]) -> None:
    """More shards than a manifest holds, and more variables than an expression can have, are refused."""
    with pytest.raises(ConfigValidationError, match=r"at most|are allowed"):
        make()
