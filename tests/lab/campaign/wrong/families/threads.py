"""Statements of threads other than the block's."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pyspark import inheritable_thread_target
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from tests.lab.campaign.wrong.script import BASE, BATCH, BOTH, script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.campaign.wrong.job import WrongJob

_MORE = tuple(range(20, 25))
_WAIT_S = 60.0


def _wait_for(file: Path) -> None:
    """Wait for a file, within a limit for a busy machine."""
    end = time.monotonic() + _WAIT_S
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)


@script(formats=BOTH, after=(*BASE, *BATCH, *_MORE), short=("delta",))
def pool_that_nobody_asks(job: WrongJob) -> None:
    """A pool's thread appends a part, and its future is never read."""
    with job.guard() as sw:
        job.append(sw.table)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(job.append, sw.table, _MORE)
        sw.success()


@script(formats=BOTH)
def pool_alone(job: WrongJob) -> None:
    """Threads append all rows, and their futures are never read."""
    with job.guard() as sw:
        with ThreadPoolExecutor(2) as pool:
            pool.submit(job.append, sw.table, range(10, 13))
            pool.submit(job.append, sw.table, range(13, 17))
        sw.success()


@script(formats=BOTH)
def pool_that_is_asked(job: WrongJob) -> None:
    """A thread appends all rows, and its future is read."""
    with job.guard() as sw, ThreadPoolExecutor(1) as pool:
        pool.submit(job.append, sw.table).result()
        sw.success()


@script(formats=BOTH)
def thread_that_inherits(job: WrongJob) -> None:
    """The thread inherits the block's properties, as PySpark recommends."""
    with job.guard() as sw:
        thread = threading.Thread(target=inheritable_thread_target(job.spark)(job.append), args=(sw.table,))
        thread.start()
        thread.join()
        sw.success()


@script(
    formats=BOTH,
    after=(*BASE, *BATCH, *_MORE),
    parts=((*BASE, *BATCH),),
    short=("delta",),
)
def thread_that_outlives_the_block(job: WrongJob) -> None:
    """A thread begins its part in the block, and ends it after the block has succeeded."""
    begun, over = job.folder / f"begun-{job.attempt}", job.folder / f"over-{job.attempt}"

    def when_over(id_: int) -> int:
        begun.touch()
        end = time.monotonic() + 60  # Python's worker cannot import these modules
        while not over.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return id_

    def late(table: str) -> None:
        job.append_frame(table, job.frame(_MORE).select(F.udf(when_over, "long")("id").alias("id")))

    try:
        with job.guard() as sw:
            job.append(sw.table)
            thread = threading.Thread(target=inheritable_thread_target(job.spark)(late), args=(sw.table,))
            thread.start()
            _wait_for(begun)
            sw.success()
    finally:
        over.touch()
    thread.join()


@script(formats=BOTH)
def success_in_a_thread(job: WrongJob) -> None:
    """The block's thread writes the rows, and another one calls success()."""
    with job.guard() as sw:
        job.append(sw.table)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(sw.success).result()


@script(formats=BOTH)
def success_beside_the_write(job: WrongJob) -> None:
    """A thread writes, and the block does not wait for it before success()."""
    with job.guard() as sw:
        thread = threading.Thread(target=job.append, args=(sw.table,))
        thread.start()
        sw.success()
    thread.join()


@script(formats=BOTH, after=(*BASE, *BATCH, *_MORE), parts=((*BASE, *BATCH),))
def two_blocks_on_one_session(job: WrongJob) -> None:
    """A second block is opened on the session of the first."""
    with job.guard() as sw, job.guard(step="second") as other:
        job.append(sw.table)
        job.append(other.table, _MORE)
        sw.success()
        other.success()


@script(formats=BOTH, after=(*BASE, *BATCH, *_MORE), parts=((*BASE, *BATCH), (*BASE, *_MORE)))
def two_blocks_in_two_threads(job: WrongJob) -> None:
    """Two threads open a block each on one session, and both futures are read."""

    def block(step: str, ids: tuple[int, ...]) -> None:
        with job.guard(step=step) as sw:
            job.append(sw.table, ids)
            sw.success()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(block, "first", BATCH), pool.submit(block, "second", _MORE)]:
            done.result()


@script(formats=BOTH, after=(*BASE, *BATCH, *_MORE), parts=((*BASE, *BATCH), (*BASE, *_MORE)))
def two_blocks_in_two_threads_unasked(job: WrongJob) -> None:
    """Two threads open a block each on one session; the second begins while the first is open, and is never read."""
    with job.guard(step="first") as sw:

        def block() -> None:
            with job.guard(step="second") as other:
                job.append(other.table, _MORE)
                other.success()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(block)
        job.append(sw.table)
        sw.success()


@script(after=(*BASE, *BATCH, *_MORE), parts=((*BASE, *BATCH), (*BASE, *_MORE)), succeeds=(1, 2))
def two_blocks_on_two_sessions(job: WrongJob) -> None:
    """A thread has a session, a block and a step of its own: unusual, and right."""
    other = job.start_spark()

    def beside() -> None:
        with job.guard(spark=other, step="beside") as sw:
            other.range(_MORE[0], _MORE[-1] + 1, 1, 1).write.format("delta").mode("append").save(sw.table)
            sw.success()

    with job.guard() as sw, ThreadPoolExecutor(1) as pool:
        job.append(sw.table)
        pool.submit(beside).result()
        sw.success()
