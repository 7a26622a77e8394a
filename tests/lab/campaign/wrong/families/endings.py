"""Blocks that are left in another way than by one success() behind one write."""

from __future__ import annotations

import contextlib
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, MERGED, script

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.campaign.wrong.job import WrongJob


@script(formats=BOTH, short=("delta",))
def success_forgotten(job: WrongJob) -> None:
    """The block ends behind its append, and nobody has called success()."""
    with job.guard() as sw:
        job.append(sw.table)


@script(formats=BOTH, after=MERGED)
def success_forgotten_behind_a_merge(job: WrongJob) -> None:
    """The same, behind a MERGE."""
    with job.guard() as sw:
        job.merge(sw.table)


@script(formats=BOTH)
def success_without_parentheses(job: WrongJob) -> None:
    """The method is named, and not called."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success  # noqa: B018 - the mistake


@script(formats=BOTH)
def success_before_the_write(job: WrongJob) -> None:
    """Success is declared first, as one begins a transaction."""
    with job.guard() as sw:
        sw.success()
        job.append(sw.table)


@script(formats=BOTH, succeeds=(1, 2))
def success_twice(job: WrongJob) -> None:
    """Success is declared twice: needless, and right."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        sw.success()


@script(formats=BOTH)
def success_behind_the_block(job: WrongJob) -> None:
    """Success is declared when the block has ended."""
    with job.guard() as sw:
        job.append(sw.table)
    sw.success()


@script(formats=BOTH)
def return_before_success(job: WrongJob) -> None:
    """A function returns from within the block."""

    def load() -> int:
        with job.guard() as sw:
            job.append(sw.table)
            if len(BATCH) > 1:
                return len(BATCH)
            sw.success()
        return 0

    load()


@script(formats=BOTH)
def break_before_success(job: WrongJob) -> None:
    """A loop is left from within the block."""
    for _ in range(3):
        with job.guard() as sw:
            job.append(sw.table)
            break
    print("loaded")


@script(formats=BOTH)
def generator_that_is_left(job: WrongJob) -> None:
    """The block stands in a generator that nobody asks for its end."""

    def batches() -> Iterator[int]:
        with job.guard() as sw:
            job.append(sw.table)
            yield len(BATCH)
            sw.success()

    next(batches())


@script(formats=BOTH)
def exit_with_zero(job: WrongJob) -> None:
    """The script ends itself with exit code 0 in the block."""
    with job.guard() as sw:
        job.append(sw.table)
        sys.exit(0)


@script(formats=BOTH, succeeds=(1, 2))
def exit_with_zero_behind_success(job: WrongJob) -> None:
    """The same behind success(): unusual, and right."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        sys.exit(0)


@script(formats=BOTH, after=BASE)
def nothing_to_write(job: WrongJob) -> None:
    """An empty batch is not written, and success is declared all the same."""
    frame = job.frame().where("id > 99")
    with job.guard() as sw:
        if not frame.isEmpty():
            job.append_frame(sw.table, frame)
        sw.success()


@script(formats=BOTH, short=("delta",))
def condition_that_is_wrong(job: WrongJob) -> None:
    """A condition with an error leaves the batch out, and success is declared all the same."""
    frame = job.frame()
    with job.guard() as sw:
        if frame.isEmpty():
            job.append_frame(sw.table, frame)
        sw.success()


@script(after=BASE)
def mode_ignore(job: WrongJob) -> None:
    """Mode "ignore" writes nothing to a table that is there, as its name says."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("ignore").save(sw.table)
        sw.success()


@script(before=(), succeeds=(1, 2))
def mode_ignore_for_a_new_table(job: WrongJob) -> None:
    """The same for a table that is not there: unusual, and right."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("ignore").save(sw.table)
        sw.success()


@script()
def create_if_not_exists(job: WrongJob) -> None:
    """CREATE TABLE IF NOT EXISTS … AS SELECT writes nothing to a table that is there."""
    with job.guard() as sw:
        job.frame().createOrReplaceTempView("batch")
        job.spark.sql(f"CREATE TABLE IF NOT EXISTS o USING delta LOCATION '{sw.table}' AS SELECT * FROM batch")
        sw.success()


@script()
def mode_forgotten(job: WrongJob) -> None:
    """Without a mode Spark refuses to write to a table that is there."""
    with job.guard() as sw:
        job.frame().write.format("delta").save(sw.table)
        sw.success()


@script(before=(), succeeds=(1, 2))
def mode_forgotten_for_a_new_table(job: WrongJob) -> None:
    """The same for a table that is not there: right, and so is its retry."""
    with job.guard() as sw:
        job.frame().write.format("delta").save(sw.table)
        sw.success()


@script(formats=BOTH, short=("delta",))
def block_forgotten(job: WrongJob) -> None:
    """The guard is made, and its block is never entered."""
    sw = job.guard()
    job.append(sw.table)
    sw.success()


@script(formats=BOTH, after=(*BASE, *BATCH, 20, 21), parts=((*BASE, *BATCH),), attempts=1)
def write_behind_the_block(job: WrongJob) -> None:
    """The guard's table is written once more when its block has ended."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
    job.append(sw.table, (20, 21))


@script(formats=BOTH, after=(*BASE, *BATCH, 20, 21), parts=((*BASE, *BATCH),))
def two_blocks_of_one_name(job: WrongJob) -> None:
    """A loop writes two batches to one table, and names no step."""
    for ids in (BATCH, (20, 21)):
        with job.guard() as sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, after=(*BASE, *BATCH, 20, 21), parts=((*BASE, *BATCH),), short=("delta",))
def two_blocks_of_one_name_swallowed(job: WrongJob) -> None:
    """The same, and the loop logs the error of a day and goes on with the next one."""
    for ids in (BATCH, (20, 21)):
        with contextlib.suppress(Exception), job.guard() as sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, parts=((*BASE, *BATCH[:3]),))
def block_entered_twice_swallowed(job: WrongJob) -> None:
    """One guard is used for two blocks, and the error is swallowed."""
    sw = job.guard()
    for ids in (BATCH[:3], BATCH[3:]):
        with contextlib.suppress(Exception), sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, parts=((*BASE, *BATCH[:3]),))
def block_entered_twice(job: WrongJob) -> None:
    """One guard is used for two blocks."""
    sw = job.guard()
    for ids in (BATCH[:3], BATCH[3:]):
        with sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def block_in_a_stack(job: WrongJob) -> None:
    """The block is entered by way of an ExitStack: unusual, and right."""
    with ExitStack() as stack:
        sw = stack.enter_context(job.guard())
        job.append(sw.table)
        sw.success()


@script(formats=BOTH)
def step_that_counts_attempts(job: WrongJob) -> None:
    """The first attempt fails behind its write; the retry names its step otherwise, as a time of day would."""
    with job.guard(step=f"run at {job.attempt}") as sw:
        job.append(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()
