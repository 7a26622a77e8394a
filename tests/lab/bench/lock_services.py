"""The lock services of a benchmark: SoAL's on each backend, and kazoo's own `Lock` on the same ZooKeeper."""

from __future__ import annotations

import importlib
import os
import tempfile
import threading
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from unittest.mock import patch

import boto3

from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.errors import SettingError
from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.rules import Delay, Match, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from safewriter.coordination.backend import Backend

__all__ = ["KAZOO", "NAMES", "Contender", "LockService", "NotHereError", "Servers"]

_BUCKET: Final = "bench-locks"
_LATENCY_MS: Final = 30
_SERVER: Final = "tests.support.zookeeper_server"

KAZOO: Final = "kazoo's Lock"


class NotHereError(Exception):
    """A service is not available here; the message says why."""


class Contender(Protocol):
    """One job that competes for one lock."""

    def lock(self) -> object:
        """Wait for the lock and take it."""
        ...

    def unlock(self) -> object:
        """Release it."""
        ...


@dataclass(frozen=True, slots=True)
class LockService:
    """`contender` returns the contender with a number at a lock. `counting` counts the requests within a block."""

    contender: Callable[[str, int], Contender]
    counting: Callable[[], Any]


class Count:
    """The number of requests in a block; None where they cannot be counted."""

    def __init__(self, requests: int | None = None) -> None:
        self.requests = requests


class Servers:
    """A context manager; each server starts when the first service needs it, and stops with the block."""

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def open(self, name: str) -> LockService:
        """Open one of `NAMES`. Raises `NotHereError`."""
        return _OPENERS[name](self)

    @cached_property
    def s3(self) -> EmbeddedS3:
        """An S3 (and DynamoDB, if the emulator has it) in this process."""
        s3 = self._stack.enter_context(EmbeddedS3(buckets=(_BUCKET,)))
        variables = {**s3.environment(), "AWS_ENDPOINT_URL_DYNAMODB": s3.endpoint}
        self._stack.enter_context(patch.dict(os.environ, variables))
        return s3

    @cached_property
    def zookeeper(self) -> tuple[Any, _Calls]:
        """A ZooKeeper server, and the counter of all clients' requests to it."""
        try:
            client, server = importlib.import_module("kazoo.client"), importlib.import_module(_SERVER)
        except ModuleNotFoundError as error:
            raise NotHereError(f"there is no module {error.name}") from error
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-"))
        calls = _Calls(client.KazooClient._call)
        self._stack.enter_context(patch.object(client.KazooClient, "_call", calls.method))
        return self._stack.enter_context(server.ZooKeeper(Path(folder))), calls

    def jobs(self, uri: Callable[[], str]) -> Callable[[str, int], JobCoordinator]:
        """Return a factory of jobs, each with its own backend. Raises `NotHereError` without the backend's server."""
        backends: dict[int, Backend] = {}

        def contender(lock: str, number: int) -> JobCoordinator:
            if number not in backends:
                backends[number] = open_backend(uri())
                self._stack.callback(backends[number].close)
            return JobCoordinator(Configuration(lock=lock, job=f"job-{number}", poll_s=self._poll_s), backends[number])

        try:
            contender("probed", 0)
        except (SettingError, ModuleNotFoundError) as error:
            raise NotHereError(str(error)) from error
        return contender

    def closing(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the block ends."""
        self._stack.callback(callback)


class _Calls:
    """Counts the calls of a method; patch it with `method`."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.count = 0
        counting = threading.Lock()

        def method(client: object, *arguments: object) -> object:
            with counting:
                self.count += 1
            return original(client, *arguments)

        self.method = method

    @contextmanager
    def counting(self) -> Iterator[Count]:
        count, before = Count(), self.count
        yield count
        count.requests = self.count - before


def _memory(servers: Servers) -> LockService:
    uri = f"memory://{uuid.uuid4().hex}"

    @contextmanager
    def counting() -> Iterator[Count]:
        yield Count()

    return LockService(servers.jobs(lambda: uri), counting)


def _s3(servers: Servers, *, latency_ms: int = 0) -> LockService:
    s3 = servers.s3
    return LockService(servers.jobs(lambda: f"s3://{_BUCKET}/{latency_ms}"), _traced(s3, latency_ms))


def _s3_far_away(servers: Servers) -> LockService:
    return _s3(servers, latency_ms=_LATENCY_MS)


def _dynamodb(servers: Servers) -> LockService:
    s3 = servers.s3
    jobs = servers.jobs(lambda: f"dynamodb://{_BUCKET}")
    boto3.client("dynamodb").create_table(
        TableName=_BUCKET,
        AttributeDefinitions=[{"AttributeName": "lock", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "lock", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return LockService(jobs, _traced(s3, 0))


def _traced(s3: EmbeddedS3, latency_ms: int) -> Callable[[], Any]:
    @contextmanager
    def counting() -> Iterator[Count]:
        count = Count()
        if latency_ms:
            s3.wire.add(Rule(Match(), Delay(latency_ms), times=None))
        s3.wire.clear_trace()
        try:
            yield count
        finally:
            count.requests = len(s3.trace())
            s3.wire.clear_rules()

    return counting


def _zookeeper(servers: Servers) -> LockService:
    server, calls = servers.zookeeper
    return LockService(servers.jobs(lambda: str(server.uri)), calls.counting)


class _Kazoo:
    """A contender for kazoo's own lock, with its own session."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def lock(self) -> object:
        return self._lock.acquire()

    def unlock(self) -> object:
        return self._lock.release()


def _kazoo(servers: Servers) -> LockService:
    server, calls = servers.zookeeper
    client_class = importlib.import_module("kazoo.client").KazooClient
    clients: dict[int, Any] = {}

    def contender(lock: str, number: int) -> _Kazoo:
        if number not in clients:
            clients[number] = client_class(hosts=server.hosts)
            clients[number].start()
            servers.closing(clients[number].close)
            servers.closing(clients[number].stop)
        return _Kazoo(clients[number].Lock(f"/kazoo/{lock}", str(number)))

    return LockService(contender, calls.counting)


_OPENERS: Final[Mapping[str, Callable[[Servers], LockService]]] = {
    "memory": _memory,
    "s3": _s3,
    f"s3 at {_LATENCY_MS} ms": _s3_far_away,
    "dynamodb": _dynamodb,
    "zookeeper": _zookeeper,
    KAZOO: _kazoo,
}
NAMES: Final = tuple(_OPENERS)
