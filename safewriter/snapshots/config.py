"""The configuration of a build, with the names and the defaults of shardyfusion's writer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from types import NoneType
from typing import TYPE_CHECKING, Any

from safewriter.objects.location import Location
from safewriter.snapshots.checks import check_count, check_number, check_type, chosen
from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.places import checked_segment, prefix_of
from safewriter.snapshots.sharding import ShardingSpec, ShardingStrategy, check_shards

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from safewriter.snapshots.metrics import MetricsCollector
    from safewriter.snapshots.write.sinks import AdapterFactory

__all__ = ["Duplicates", "ManifestOptions", "OutputOptions", "RetryConfig", "WriteConfig"]


class Duplicates(StrEnum):
    """What happens to rows with the same key."""

    ERROR = "error"
    """The build fails, and names the key."""
    LAST = "last"
    """Keep the row with the highest value in the column `last_by`; null is lower than all. If two rows have the highest
    value, the build fails, and names the key."""
    ANY = "any"
    """Keep one of the rows, unspecified which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Where a build writes its shards and its run record. `local_root` is for files in progress; each task makes a
    directory below it. None: a directory per user in the temporary directory of the task's machine.
    """

    run_id: str | None = None
    db_path_template: str = "db={db_id:05d}"
    shard_prefix: str = "shards"
    run_registry_prefix: str = "runs"
    local_root: Path | None = None

    def __post_init__(self) -> None:
        if self.run_id is not None:
            checked_segment("run_id", self.run_id)
        checked_segment("shard_prefix", self.shard_prefix)
        checked_segment("run_registry_prefix", self.run_registry_prefix)
        check_type("db_path_template", self.db_path_template, str)
        try:
            first, second = (self.db_path_template.format(db_id=number) for number in (1, 2))
        except (KeyError, IndexError, ValueError) as error:
            raise ConfigValidationError(
                f"db_path_template {self.db_path_template!r} cannot be filled: {error}"
            ) from None
        if first == second:
            raise ConfigValidationError(f"db_path_template {self.db_path_template!r} does not name {{db_id}}")
        checked_segment("db_path_template", first)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """Extra fields of the manifest, which must be serialisable as JSON."""

    custom_manifest_fields: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            json.dumps(dict(self.custom_manifest_fields), sort_keys=True, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigValidationError(f"custom_manifest_fields cannot be JSON: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig:
    """Retries of writing a shard. Each pause is `backoff_multiplier` times the previous one."""

    max_retries: int = 3
    initial_backoff_s: float = 1.0
    backoff_multiplier: float = 2.0

    def __post_init__(self) -> None:
        check_count("shard_retry: max_retries", self.max_retries, at_least=0)
        check_number("shard_retry: initial_backoff_s", self.initial_backoff_s)
        check_number("shard_retry: backoff_multiplier", self.backoff_multiplier, at_least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteConfig:
    """The configuration of one snapshot. Raises `ConfigValidationError`.

    Parameters
    ----------
    num_dbs
        The number of shards; None if `sharding` determines it.
    s3_prefix
        `s3://bucket/prefix` of the snapshots. The scheme s3a and doubled slashes are normalised.
    key_encoding
        How the shards store keys.
    sharding
        The rule that maps rows to shards: by default the hash of the key.
    duplicates
        What happens to rows with the same key.
    last_by
        The column that decides which of them to keep, for `Duplicates.LAST`.
    incremental
        Take over each shard of the current snapshot that has the same rows, and write only the others. This reads the
        source twice, unless the current snapshot is of a build without `incremental` or by another rule. Takes no
        `callable_encoder` and no `adapter_factory`.
    adapter_factory
        Opens the database of a shard, in its task; None for the SQLite file that readers expect.
    shard_retry
        The retries of `write_single_db`; None: no retries. Spark retries the tasks of `write_sharded`.
    metrics_collector
        Its `emit(event, payload)` gets the events of the build (`safewriter.snapshots.metrics.MetricEvent`), on the
        driver.
    """

    s3_prefix: str
    num_dbs: int | None = None
    key_encoding: KeyEncoding = KeyEncoding.U64BE
    sharding: ShardingSpec = field(default_factory=ShardingSpec)
    duplicates: Duplicates = Duplicates.ERROR
    last_by: str | None = None
    incremental: bool = False
    adapter_factory: AdapterFactory | None = None
    shard_retry: RetryConfig | None = None
    metrics_collector: MetricsCollector | None = None
    output: OutputOptions = field(default_factory=OutputOptions)
    manifest: ManifestOptions = field(default_factory=ManifestOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key_encoding", chosen("key_encoding", self.key_encoding, KeyEncoding))
        object.__setattr__(self, "duplicates", chosen("duplicates", self.duplicates, Duplicates))
        object.__setattr__(self, "s3_prefix", str(prefix_of(self.s3_prefix)))
        check_type("sharding", self.sharding, ShardingSpec)
        check_type("output", self.output, OutputOptions)
        check_type("manifest", self.manifest, ManifestOptions)
        check_type("shard_retry", self.shard_retry, RetryConfig, NoneType)
        check_type("last_by", self.last_by, str, NoneType)
        check_type("incremental", self.incremental, bool)
        if self.sharding.strategy is ShardingStrategy.CEL:
            if self.num_dbs is not None:
                raise ConfigValidationError("num_dbs must be None where an expression decides; see sharding")
        elif (self.num_dbs is None) == (self.sharding.max_keys_per_shard is None):
            raise ConfigValidationError("give num_dbs, or sharding.max_keys_per_shard, and not both")
        if self.num_dbs is not None:
            check_count("num_dbs", self.num_dbs)
            check_shards(self.num_dbs, "num_dbs")
        if (self.last_by is not None) != (self.duplicates is Duplicates.LAST):
            raise ConfigValidationError("give last_by, the column, with duplicates=Duplicates.LAST, and only with it")

    @property
    def location(self) -> Location:
        """The location of the snapshots."""
        return Location.parse(self.s3_prefix)
