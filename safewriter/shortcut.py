"""A whole guarded write in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from safewriter.writer import SafeWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter

    from safewriter.record.document import Checkpoint

__all__ = ["save"]


def save(
    writer: DataFrameWriter,
    table: str,
    *,
    step: str | None = None,
    commit_point: Literal["write", "success"] = "write",
) -> Checkpoint:
    """Write a guarded Delta table, or skip the write if an earlier attempt of this run has committed it.

    >>> save(frame.write.mode("append").partitionBy("country"), "s3a://lake/accommodations")  # doctest: +SKIP

    `writer` is a DataFrame's writer with everything but format and path. Returns the checkpoint document; raises what
    `SafeWriter` raises.
    """
    block = SafeWriter(writer._spark, table, step=step, commit_point=commit_point)  # noqa: SLF001 - there is no other way
    with block:
        if not block.already_committed:
            writer.format("delta").save(block.table)
        block.success()
    return cast("Checkpoint", block.checkpoint)  # a block that has ended has one
