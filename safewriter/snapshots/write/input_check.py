"""Check, before a build claims or reads anything, that its columns can be keys, values and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.columns import existing
from safewriter.snapshots.write.unchanged import check_comparable
from safewriter.snapshots.write.values import check_travels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.format.encoding import KeyEncoding
    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["check_input"]

_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_BYTES: Final = ("string", "binary")
_RANKS: Final = (*_INTEGERS, *_BYTES, "float", "double", "decimal", "boolean", "date", "timestamp", "timestamp_ntz")


def check_input(df: DataFrame, config: WriteConfig, key_col: str, value_spec: ValueSpec) -> None:
    """Raise `ConfigValidationError` for an unsuitable column, an `adapter_factory` that cannot be pickled, or an
    incremental build that cannot compare its values.
    """
    _check_key(df, key_col, config.key_encoding)
    if config.last_by is not None:
        _check_rank(df, config.last_by)
    check_travels("adapter_factory", config.adapter_factory)
    check_comparable(config, value_spec)
    value_spec.column(df, key_col)


def _check_key(df: DataFrame, key_col: str, encoding: KeyEncoding) -> None:
    existing(df, key_col)
    kind = df.schema[key_col].dataType.simpleString()
    fitting = _BYTES if encoding.limit is None else _INTEGERS
    if kind not in fitting:
        raise ConfigValidationError(
            f"the key column {key_col!r} has the type {kind}; the encoding {encoding} asks for {', '.join(fitting)}."
            " Cast it, or give another key_encoding"
        )


def _check_rank(df: DataFrame, last_by: str) -> None:
    existing(df, last_by)
    kind = df.schema[last_by].dataType.simpleString()
    if kind.split("(")[0] not in _RANKS:
        raise ConfigValidationError(
            f"the column {last_by!r} of last_by has the type {kind}; it asks for one of {', '.join(_RANKS)}"
        )
