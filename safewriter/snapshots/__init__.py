"""Snapshots: a DataFrame as sharded key-value files, published whole or not at all."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from safewriter.snapshots.config import Duplicates, ManifestOptions, OutputOptions, WriteConfig
    from safewriter.snapshots.format.encoding import KeyEncoding
    from safewriter.snapshots.read.reader import SnapshotReader
    from safewriter.snapshots.sharding import (
        CelColumn,
        CelType,
        ShardingSpec,
        ShardingStrategy,
        cel_sharding,
        cel_sharding_by_columns,
    )
    from safewriter.snapshots.write.build import BuildResult, write_sharded
    from safewriter.snapshots.write.values import binary_col, callable_encoder, json_cols

__all__ = [
    "BuildResult",
    "CelColumn",
    "CelType",
    "Duplicates",
    "KeyEncoding",
    "ManifestOptions",
    "OutputOptions",
    "ShardingSpec",
    "ShardingStrategy",
    "SnapshotReader",
    "WriteConfig",
    "binary_col",
    "callable_encoder",
    "cel_sharding",
    "cel_sharding_by_columns",
    "json_cols",
    "write_sharded",
]

_HOMES: Final = {
    "config": ("Duplicates", "ManifestOptions", "OutputOptions", "WriteConfig"),
    "format.encoding": ("KeyEncoding",),
    "read.reader": ("SnapshotReader",),
    "sharding": (
        "CelColumn",
        "CelType",
        "ShardingSpec",
        "ShardingStrategy",
        "cel_sharding",
        "cel_sharding_by_columns",
    ),
    "write.build": ("BuildResult", "write_sharded"),
    "write.values": ("binary_col", "callable_encoder", "json_cols"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module has
    """Import a name at its first use: who settles a dead build, or only reads, needs neither pyarrow nor numpy."""
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{home}"), name)
