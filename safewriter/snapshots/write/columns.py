"""The columns of a build's rows between Spark and the tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ConfigValidationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DIGESTS", "KEY", "RANK", "ROUTING", "SHARD", "VALUE", "check_column", "existing"]

SHARD: Final = "soal_shard"
KEY: Final = "soal_key"
VALUE: Final = "soal_value"
RANK: Final = "soal_rank"
"""The column `last_by`, which decides which row of a key to keep."""
DIGESTS: Final = ("soal_digest_0", "soal_digest_1")
"""The numbers of each row in an incremental build."""
ROUTING: Final = "soal_routing_"
"""The prefix of the other columns that the routing reads, numbered from 0."""


def check_column(df: DataFrame, name: str) -> None:
    """Raise `ConfigValidationError` unless there is one column of exactly this name, and Spark can resolve it."""
    if name not in df.columns:
        raise ConfigValidationError(f"there is no column {name!r}; there are {', '.join(df.columns)}")
    if df.columns.count(name) > 1:
        raise ConfigValidationError(f"there are several columns {name!r}; rename all but one")
    alike = [column for column in df.columns if column.lower() == name.lower()]
    if len(alike) > 1 and str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() != "true":
        raise ConfigValidationError(
            f"Spark does not tell the columns {', '.join(alike)} apart; rename all but one, or set"
            " spark.sql.caseSensitive"
        )


def existing(df: DataFrame, name: str) -> Column:
    """Return a top-level column by its exact name, which may contain dots. Raises `ConfigValidationError`."""
    from pyspark.sql import functions

    check_column(df, name)
    escaped = name.replace("`", "``")
    return functions.col(f"`{escaped}`")
