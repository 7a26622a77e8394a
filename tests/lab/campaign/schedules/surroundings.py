"""Give the code under test the simulation's clock, threads, random numbers and S3, wherever it takes them by itself."""

from __future__ import annotations

import json
import logging
import uuid
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn
from unittest.mock import patch

from safewriter import writer
from safewriter.block import claim, ending, until_answered
from safewriter.objects.s3 import S3ObjectStore
from tests.lab.campaign.schedules.simulation import SECOND, Killed, simulation
from tests.lab.campaign.schedules.threads import Event, Executor, Lock, Thread, Timer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects.location import Location

__all__ = ["monotonic_s", "sleep", "store_of", "surroundings"]


class _Registry:
    """The open blocks of the running process, which the code under test keeps in a module."""

    def open(self, session: object, write: Any) -> None:
        self._own().open(session, write)

    def close(self, session: object, write: Any) -> None:
        self._own().close(session, write)

    @staticmethod
    def _own() -> writer.OpenBlocks:
        return simulation().actor.process.own.setdefault("blocks", writer.OpenBlocks())  # type: ignore[no-any-return]


def sleep(seconds: float) -> None:
    """Let the running thread sleep."""
    simulation().sleep(int(seconds * SECOND))


def monotonic_s() -> float:
    """Return the time that has passed, in seconds."""
    return simulation().now / SECOND


def store_of(location: Location) -> S3ObjectStore:
    """Open a bucket or prefix of the running simulation."""
    client: Any = simulation().main.process.own["client"]
    return S3ObjectStore(client, location.bucket, location.key, sleep=sleep)


def _unique_id() -> str:
    return uuid.UUID(int=simulation().actor.process.random.getrandbits(128)).hex


def _dumps(value: Any, *, indent: int) -> str:
    return json.dumps(value)


def _exit(_: int) -> NoReturn:
    world = simulation()
    world.kill(world.actor.process)
    raise Killed


@contextmanager
def surroundings() -> Iterator[None]:
    """Patch the code under test, for any number of simulations."""
    clock = SimpleNamespace(
        time_ns=lambda: simulation().wall_ms() * 1_000_000, time=lambda: simulation().wall_ms() / 1000
    )
    threads = SimpleNamespace(Thread=Thread, Timer=Timer, Lock=Lock, Event=Event)
    until = partial(until_answered.until_answered, now_s=monotonic_s)
    with ExitStack() as stack:
        for target, fake in {
            "safewriter.deadline.time": clock,
            "safewriter.block.watchdog.threading": threads,
            "safewriter.block.ending.threading": threads,
            "safewriter.block.ending.os": SimpleNamespace(_exit=_exit),
            "safewriter.block.ending.until_answered": until,
            "safewriter.block.tidy.threading": threads,
            "safewriter.block.opening.ThreadPoolExecutor": Executor,
            "safewriter.block.opening.Claimer": partial(claim.Claimer, sleep=sleep),
            "safewriter.settle.shares.ThreadPoolExecutor": Executor,
            "safewriter.settle.shares.threading": threads,
            "safewriter.tables.delta.history.ThreadPoolExecutor": Executor,
            "safewriter.tables.delta.history.unique_id": _unique_id,
            "safewriter.identity.unique_id": _unique_id,
            "safewriter.record.document.unique_id": _unique_id,
            "safewriter.record.document.json": SimpleNamespace(dumps=_dumps),
            "safewriter.record.journal.unique_id": _unique_id,
            "safewriter.settle.supervisor.open_store": store_of,
            "safewriter.settle.supervisor.table_store": lambda uri: store_of(_parsed(uri)),
            "safewriter.writer.Ending": partial(ending.Ending, sleep=sleep),
            "safewriter.writer._registry": _Registry(),
        }.items():
            stack.enter_context(patch(target, fake))
        logger = logging.getLogger("safewriter")
        level = logger.level
        logger.setLevel(logging.CRITICAL + 1)
        stack.callback(logger.setLevel, level)
        yield


def _parsed(uri: str) -> Location:
    from safewriter.objects.location import Location

    return Location.parse(uri)
