"""Snapshots: a DataFrame as sharded key-value files, published whole or not at all."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from safewriter.snapshots.config import Duplicates, ManifestOptions, OutputOptions, RetryConfig, WriteConfig
    from safewriter.snapshots.format.encoding import KeyEncoding
    from safewriter.snapshots.keep.cleanup import cleanup
    from safewriter.snapshots.keep.history import history
    from safewriter.snapshots.keep.rollback import Target, rollback
    from safewriter.snapshots.keep.survey import Keeping
    from safewriter.snapshots.read.asynchronous import AsyncSnapshotReader
    from safewriter.snapshots.read.reader import SnapshotReader
    from safewriter.snapshots.read.source import Source
    from safewriter.snapshots.read.verification import verify
    from safewriter.snapshots.sharding import (
        CelColumn,
        CelType,
        ShardingSpec,
        ShardingStrategy,
        cel_sharding,
        cel_sharding_by_columns,
    )
    from safewriter.snapshots.write.build import BuildResult, write_sharded, write_single_db
    from safewriter.snapshots.write.values import binary_col, callable_encoder, json_cols

__all__ = [
    "AsyncSnapshotReader",
    "BuildResult",
    "CelColumn",
    "CelType",
    "Duplicates",
    "Keeping",
    "KeyEncoding",
    "ManifestOptions",
    "OutputOptions",
    "RetryConfig",
    "ShardingSpec",
    "ShardingStrategy",
    "SnapshotReader",
    "Source",
    "Target",
    "WriteConfig",
    "binary_col",
    "callable_encoder",
    "cel_sharding",
    "cel_sharding_by_columns",
    "cleanup",
    "history",
    "json_cols",
    "rollback",
    "verify",
    "write_sharded",
    "write_single_db",
]

_HOMES: Final = {
    "config": ("Duplicates", "ManifestOptions", "OutputOptions", "RetryConfig", "WriteConfig"),
    "format.encoding": ("KeyEncoding",),
    "keep.cleanup": ("cleanup",),
    "keep.history": ("history",),
    "keep.rollback": ("Target", "rollback"),
    "keep.survey": ("Keeping",),
    "read.asynchronous": ("AsyncSnapshotReader",),
    "read.reader": ("SnapshotReader",),
    "read.source": ("Source",),
    "read.verification": ("verify",),
    "sharding": (
        "CelColumn",
        "CelType",
        "ShardingSpec",
        "ShardingStrategy",
        "cel_sharding",
        "cel_sharding_by_columns",
    ),
    "write.build": ("BuildResult", "write_sharded", "write_single_db"),
    "write.values": ("binary_col", "callable_encoder", "json_cols"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module has
    """Import a name at its first use: settlers and readers need neither pyarrow nor numpy."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{home}"), name)
