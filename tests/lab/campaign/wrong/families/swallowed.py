"""Errors that the script catches before it continues."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, ICEBERG, MERGED, script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tests.lab.campaign.wrong.job import WrongJob

_log = logging.getLogger(__name__)


def _failing(frame: DataFrame) -> DataFrame:
    """Return the rows through a function that fails in its task."""

    def fail(_: int) -> NoReturn:
        raise ValueError("a row that nobody thought of")

    return frame.select(F.udf(fail, "long")("id").alias("id"))


@script(formats=BOTH, short=("delta",))
def around_the_write(job: WrongJob) -> None:
    """A wrong column makes the write fail; the script logs the error, and calls success()."""
    with job.guard() as sw:
        try:
            job.append_frame(sw.table, job.frame().withColumn("extra", F.lit(1)))
        except Exception:
            _log.exception("could not append")
        sw.success()


@script(formats=BOTH)
def in_a_function_of_a_row(job: WrongJob) -> None:
    """A function fails in a task, and the script catches Spark's error."""
    with job.guard() as sw:
        with contextlib.suppress(Exception):
            job.append_frame(sw.table, _failing(job.frame()))
        sw.success()


@script(formats=BOTH)
def around_write_and_success(job: WrongJob) -> None:
    """Both stand in one try, so the block ends without success and without an error."""
    with job.guard() as sw:
        try:
            job.append_frame(sw.table, _failing(job.frame()))
            sw.success()
        except Exception:
            _log.exception("could not append")


@script(formats=BOTH)
def around_success(job: WrongJob) -> None:
    """No statement has written, and the script swallows success()'s error."""
    with job.guard() as sw, contextlib.suppress(Exception):
        sw.success()


@script(formats=BOTH)
def around_the_block(job: WrongJob) -> None:
    """The whole block is in a try, and the job ends with exit code 0."""
    try:
        with job.guard() as sw:
            job.append(sw.table)
            raise ValueError("a check has failed")
    except ValueError:
        _log.exception("could not append")


@script(formats=BOTH)
def keyboard_interrupt(job: WrongJob) -> None:
    """The script catches an interrupt outside of the block, and runs to its end."""
    try:
        with job.guard() as sw:
            job.append(sw.table)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        print("interrupted")


@script(short=("delta",))
def second_statement(job: WrongJob) -> None:
    """A block holds one commit; the refusal of the second append is swallowed."""
    with job.guard() as sw:
        job.append(sw.table, range(10, 13))
        with contextlib.suppress(Exception):
            job.append(sw.table, range(13, 17))
        sw.success()


@script(after=(*MERGED, 15, 16), parts=(MERGED,))
def append_behind_a_merge(job: WrongJob) -> None:
    """The second statement is refused, and the first one cannot be taken back."""
    with job.guard() as sw:
        job.merge(sw.table)
        with contextlib.suppress(Exception):
            job.append(sw.table, range(15, 17))
        sw.success()


@script(after=(3, 4, *range(10, 17)), parts=((3, 4),))
def append_behind_a_delete(job: WrongJob) -> None:
    """The old rows are deleted, and the append of the new ones is refused and swallowed."""
    with job.guard() as sw:
        job.sql("DELETE FROM {table} WHERE id < 3", sw.table)
        with contextlib.suppress(Exception):
            job.append(sw.table)
        sw.success()


@script()
def refused_then_written_elsewhere(job: WrongJob) -> None:
    """Where the second half is refused, a fallback writes it to another table."""
    with job.guard() as sw:
        job.append(sw.table, range(10, 13))
        try:
            job.append(sw.table, range(13, 17))
        except Exception:
            job.append_to_other("rejected", range(13, 17))
        sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def tried_again_in_the_block(job: WrongJob) -> None:
    """The first try fails in its tasks and is made again in the block: unusual, and right."""
    with job.guard() as sw:
        for frame in (_failing(job.frame()), job.frame()):
            with contextlib.suppress(Exception):
                job.append_frame(sw.table, frame)
        sw.success()


@script()
def tried_again_behind_a_write(job: WrongJob) -> None:
    """A loop appends the rows once more, since a check after the first append has failed."""
    with job.guard() as sw:
        for attempt in range(3):
            try:
                job.append(sw.table)
                if attempt == 0:
                    raise ValueError("a check that fails once")
                break
            except ValueError:
                continue
        sw.success()


@script(formats=BOTH)
def success_in_finally(job: WrongJob) -> None:
    """success() is in a finally, so it is called after an error, too."""
    with job.guard() as sw:
        try:
            job.append_frame(sw.table, _failing(job.frame()))
        finally:
            sw.success()


@script(formats=BOTH)
def success_in_finally_behind_a_write(job: WrongJob) -> None:
    """success() is in a finally, and the rows were written before the error."""
    with job.guard() as sw:
        try:
            job.append(sw.table)
            raise ValueError("a report could not be sent")
        finally:
            sw.success()


@script(formats=BOTH, after=(*BASE, *range(10, 24)), parts=((*BASE, *range(10, 17)),))
def one_of_two_blocks(job: WrongJob) -> None:
    """The second block fails, and its error is swallowed."""
    with job.guard(step="first") as sw:
        job.append(sw.table)
        sw.success()
    with contextlib.suppress(Exception), job.guard(step="second") as sw:
        job.append(sw.table, range(17, 24))
        if job.attempt == 1:
            raise ValueError("a check has failed")
        sw.success()


@script(formats=BOTH, succeeds=(1, 2), short=("iceberg",))
def tried_again_behind_a_shuffle(job: WrongJob) -> None:
    """The first try fails in a stage before the write's, and is made again in the block: right."""
    with job.guard() as sw:
        for frame in (_failing(job.frame()).repartition(3, "id"), job.frame()):
            with contextlib.suppress(Exception):
                job.append_frame(sw.table, frame)
        sw.success()


@script(formats=ICEBERG, parts=((*BASE, *BATCH[:3]),), short=ICEBERG)
def last_part_that_fails(job: WrongJob) -> None:
    """The first half lands, the second fails in its tasks, and its error is swallowed."""
    with job.guard() as sw:
        job.append(sw.table, BATCH[:3])
        with contextlib.suppress(Exception):
            job.append_frame(sw.table, _failing(job.frame(BATCH[3:])))
        sw.success()


@script(before=(), after=(*BATCH, 20, 21, 22), parts=(BATCH,), attempts=1)
def clone_before_the_append(job: WrongJob) -> None:
    """The script clones the table from another one first, swallows the refusal, and appends."""
    job.append_to_other("source", (20, 21, 22))
    with job.guard() as sw:
        with contextlib.suppress(Exception):
            job.spark.sql(f"CREATE TABLE delta.`{sw.table}` SHALLOW CLONE delta.`{job.other('source')}`")
        job.append(sw.table)
        sw.success()


def _with_bad_rows(job: WrongJob) -> None:
    job.append(job.table, (0, 1))
    job.append(job.table, (900, 901))


@script(
    prepare=_with_bad_rows,
    before=(0, 1, 900, 901),
    after=(0, 1, *BATCH),
    parts=((0, 1, *BATCH, 900, 901),),
    short=("delta",),
)
def restore_before_the_append(job: WrongJob) -> None:
    """The script tries to remove yesterday's bad rows by a RESTORE, and swallows the refusal."""
    with job.guard() as sw:
        with contextlib.suppress(Exception):
            job.sql("RESTORE TABLE {table} TO VERSION AS OF 0", sw.table)
        job.append(sw.table)
        sw.success()


@script(formats=BOTH, short=("delta",))
def guard_that_cannot_be_made(job: WrongJob) -> None:
    """The guard's step is no text, and the script swallows the error."""
    with contextlib.suppress(Exception), job.guard(step=5) as sw:  # type: ignore[arg-type]  # the mistake
        job.append(sw.table)
        sw.success()


@script(formats=BOTH, parts=((*BASE, *BATCH[:3]),))
def second_guard_that_cannot_be_made(job: WrongJob) -> None:
    """The first block lands half of the rows; making the second guard fails, and the script logs the error."""
    for step, ids in (("a", BATCH[:3]), (2, BATCH[3:])):
        try:
            with job.guard(step=step) as sw:  # type: ignore[arg-type]  # the mistake
                job.append(sw.table, ids)
                sw.success()
        except Exception:
            _log.exception("a part is missing")


@script()
def guard_of_a_mistyped_path(job: WrongJob) -> None:
    """The path has no scheme, and the script logs the error."""
    try:
        with job.guard(job.table.replace("s3a://", "/")) as sw:
            job.append(sw.table)
            sw.success()
    except Exception:
        _log.exception("could not append")


@script(formats=BOTH)
def step_that_lists_its_files(job: WrongJob) -> None:
    """The step lists all files of the input, and the script logs the error."""
    step = ",".join(f"s3://landing/orders/2026/11/part-{number:05d}.parquet" for number in range(2000))
    try:
        with job.guard(step=step) as sw:
            job.append(sw.table)
            sw.success()
    except Exception:
        _log.exception("could not append")
