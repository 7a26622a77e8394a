"""Blocks that end in another way than by one success() after one write."""

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
    """The block ends after its append without a call of success()."""
    with job.guard() as sw:
        job.append(sw.table)


@script(formats=BOTH, after=MERGED)
def success_forgotten_behind_a_merge(job: WrongJob) -> None:
    """The block ends after a MERGE without a call of success()."""
    with job.guard() as sw:
        job.merge(sw.table)


@script(formats=BOTH)
def success_without_parentheses(job: WrongJob) -> None:
    """The script names the method without calling it."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success  # noqa: B018 - the mistake


@script(formats=BOTH)
def success_before_the_write(job: WrongJob) -> None:
    """The script calls success() before the write, as one begins a transaction."""
    with job.guard() as sw:
        sw.success()
        job.append(sw.table)


@script(formats=BOTH, succeeds=(1, 2))
def success_twice(job: WrongJob) -> None:
    """The script calls success() twice: needless, and right."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        sw.success()


@script(formats=BOTH)
def success_behind_the_block(job: WrongJob) -> None:
    """The script calls success() after the block."""
    with job.guard() as sw:
        job.append(sw.table)
    sw.success()


@script(formats=BOTH)
def return_before_success(job: WrongJob) -> None:
    """A function returns within the block."""

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
    """The block leaves a loop by break before success()."""
    for _ in range(3):
        with job.guard() as sw:
            job.append(sw.table)
            break
    print("loaded")


@script(formats=BOTH)
def generator_that_is_left(job: WrongJob) -> None:
    """The block is in a generator that is never finished."""

    def batches() -> Iterator[int]:
        with job.guard() as sw:
            job.append(sw.table)
            yield len(BATCH)
            sw.success()

    next(batches())


@script(formats=BOTH)
def exit_with_zero(job: WrongJob) -> None:
    """The script exits with code 0 in the block."""
    with job.guard() as sw:
        job.append(sw.table)
        sys.exit(0)


@script(formats=BOTH, succeeds=(1, 2))
def exit_with_zero_behind_success(job: WrongJob) -> None:
    """The script exits with code 0 after success(): unusual, and right."""
    with job.guard() as sw:
        job.append(sw.table)
        sw.success()
        sys.exit(0)


@script(formats=BOTH, after=BASE)
def nothing_to_write(job: WrongJob) -> None:
    """The script skips an empty batch, and still calls success()."""
    frame = job.frame().where("id > 99")
    with job.guard() as sw:
        if not frame.isEmpty():
            job.append_frame(sw.table, frame)
        sw.success()


@script(formats=BOTH, short=("delta",))
def condition_that_is_wrong(job: WrongJob) -> None:
    """A wrong condition skips the batch, and the script still calls success()."""
    frame = job.frame()
    with job.guard() as sw:
        if frame.isEmpty():
            job.append_frame(sw.table, frame)
        sw.success()


@script(after=BASE)
def mode_ignore(job: WrongJob) -> None:
    """Mode "ignore" writes nothing to an existing table, as its name says."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("ignore").save(sw.table)
        sw.success()


@script(before=(), succeeds=(1, 2))
def mode_ignore_for_a_new_table(job: WrongJob) -> None:
    """Mode "ignore" for a table that does not exist: unusual, and right."""
    with job.guard() as sw:
        job.frame().write.format("delta").mode("ignore").save(sw.table)
        sw.success()


@script()
def create_if_not_exists(job: WrongJob) -> None:
    """CREATE TABLE IF NOT EXISTS … AS SELECT writes nothing to an existing table."""
    with job.guard() as sw:
        job.frame().createOrReplaceTempView("batch")
        job.spark.sql(f"CREATE TABLE IF NOT EXISTS o USING delta LOCATION '{sw.table}' AS SELECT * FROM batch")
        sw.success()


@script()
def mode_forgotten(job: WrongJob) -> None:
    """Without a mode Spark refuses to write to an existing table."""
    with job.guard() as sw:
        job.frame().write.format("delta").save(sw.table)
        sw.success()


@script(before=(), succeeds=(1, 2))
def mode_forgotten_for_a_new_table(job: WrongJob) -> None:
    """No mode for a table that does not exist: right, and so is its retry."""
    with job.guard() as sw:
        job.frame().write.format("delta").save(sw.table)
        sw.success()


@script(formats=BOTH, short=("delta",))
def block_forgotten(job: WrongJob) -> None:
    """The script makes the guard, and never enters its block."""
    sw = job.guard()
    job.append(sw.table)
    sw.success()


@script(formats=BOTH, after=(*BASE, *BATCH, 20, 21), parts=((*BASE, *BATCH),), attempts=1)
def write_behind_the_block(job: WrongJob) -> None:
    """The script writes the guard's table once more after the block."""
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
    """A loop writes two batches without steps, logs the error of a day and goes on with the next one."""
    for ids in (BATCH, (20, 21)):
        with contextlib.suppress(Exception), job.guard() as sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, parts=((*BASE, *BATCH[:3]),))
def block_entered_twice_swallowed(job: WrongJob) -> None:
    """The script uses one guard for two blocks, and swallows the error."""
    sw = job.guard()
    for ids in (BATCH[:3], BATCH[3:]):
        with contextlib.suppress(Exception), sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, parts=((*BASE, *BATCH[:3]),))
def block_entered_twice(job: WrongJob) -> None:
    """The script uses one guard for two blocks."""
    sw = job.guard()
    for ids in (BATCH[:3], BATCH[3:]):
        with sw:
            job.append(sw.table, ids)
            sw.success()


@script(formats=BOTH, succeeds=(1, 2))
def block_in_a_stack(job: WrongJob) -> None:
    """The script enters the block with an ExitStack: unusual, and right."""
    with ExitStack() as stack:
        sw = stack.enter_context(job.guard())
        job.append(sw.table)
        sw.success()


@script(formats=BOTH)
def step_that_counts_attempts(job: WrongJob) -> None:
    """The first attempt fails after its write; the retry's step has another name, as with a time of day."""
    with job.guard(step=f"run at {job.attempt}") as sw:
        job.append(sw.table)
        if job.attempt == 1:
            raise ValueError("a check that fails once")
        sw.success()
