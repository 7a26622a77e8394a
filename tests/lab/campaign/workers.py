"""Work in other processes, which end with this one."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from handler.process.tree import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

__all__ = ["all_of", "workers"]

_T = TypeVar("_T")
_LOOK_S: Final = 1.0


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; after an error it starts no more work, and waits for the running work."""
    # Spawned, since a fork would copy the locks of this process's threads.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=die_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def all_of(work: Iterable[Future[_T]], progress: Callable[[], object]) -> list[_T]:
    """Return all results, in any order; call `progress` regularly. Raises the first error."""
    pending = {*work}
    found: list[_T] = []
    while pending:
        finished, pending = wait(pending, timeout=_LOOK_S, return_when=FIRST_EXCEPTION)
        found += [one.result() for one in finished]
        progress()
    return found
