"""The shards of the current snapshot that an incremental build takes over, instead of writing the same rows again."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ConfigValidationError, ManifestParseError
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.write.row_digest import ROWS_DIGEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.format.current import ManifestAt
    from safewriter.snapshots.format.manifest import Shard
    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["NOTHING", "Comparison", "check_comparable", "earlier_shards"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the first reading of an incremental build has found. `digests`: the digest of each shard that has rows;
    None if nothing was read. `same`: the shards of the current snapshot that have these rows, and are there.
    """

    rows: int | None = None
    digests: Mapping[int, str] | None = None
    same: Mapping[int, Shard] = field(default_factory=dict)
    rows_same: int = 0


NOTHING: Final = Comparison()
"""That of a build which writes all shards."""


def check_comparable(config: WriteConfig, value_spec: ValueSpec) -> None:
    """Raise `ConfigValidationError` for an incremental build whose files do not follow from its rows alone."""
    if config.incremental and config.adapter_factory is not None:
        raise ConfigValidationError("incremental=True takes over files of SQLite; leave adapter_factory out")
    if config.incremental and not value_spec.is_comparable:
        raise ConfigValidationError(
            "incremental=True compares columns, and callable_encoder may make other values of the same columns; take"
            " binary_col or json_cols"
        )


def earlier_shards(config: WriteConfig, current: ManifestAt | None) -> dict[int, Shard]:
    """Return the shards of the current snapshot whose rows have a digest, and whose files are there with their size.

    There are none if its manifest cannot be read: then the build writes all shards. Raises `StoreError`.
    """
    if not config.incremental or current is None:
        return {}
    source = Source(config.s3_prefix)
    try:
        shards = source.manifest(current.ref, current.sha256).shards
        known = source.whole(shard for shard in shards if isinstance(shard.writer_info.get(ROWS_DIGEST), str))
    except ManifestParseError as error:
        _log.warning("all shards are written, since those of the current snapshot are unknown: %s", error)
        return {}
    return {shard.db_id: shard for shard in known}
