"""The lock services under test, behind one interface: the table of backends is `SERVICES`."""

from __future__ import annotations

import contextlib
import functools
import time
import uuid
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import boto3
from botocore.config import Config

from safewriter.coordination.backends.dynamodb import DynamoDBBackend
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.backends.s3 import S3Backend
from safewriter.objects.client import client_of
from safewriter.objects.s3 import PAUSES_S, S3ObjectStore
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3 import EmbeddedS3, Match, Rule
from soal.testing.s3.keepalive import KeepAliveServer
from soal.testing.s3.wire import OBSERVER
from tests.support.contenders import ProcessContender, ThreadContender, Wrapped
from tests.support.lost_reply import LostReply
from tests.support.waiting import until
from tests.support.zookeeper_service import LACKS, ZooKeeperLocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from safewriter.coordination.backend import Backend
    from tests.support.contenders import Contender

__all__ = [
    "ATTRIBUTES",
    "DYNAMODBS",
    "KEYS",
    "S3",
    "SERVICES",
    "DynamoDB",
    "Entry",
    "Memory",
    "Servers",
    "Service",
    "Share",
]

ATTRIBUTES: Final = [{"AttributeName": "lock", "AttributeType": "S"}]
KEYS: Final = [{"AttributeName": "lock", "KeyType": "HASH"}]
"""The table's key, as in the stack."""


class Service(Protocol):
    """One lock service. `backend` is a client that the faults hit, `observer` one that they spare."""

    def backend(self) -> Backend: ...
    def observer(self) -> Backend: ...
    def contender(self, mapping: Mapping[str, str], events: str, *, skew_s: float = 0) -> Contender: ...
    def lose(self, fault: LostReply) -> None: ...
    def forget(self, lock: str) -> None:
        """Delete the record, as a service that restarts without its memory."""
        ...


class Memory:
    """Locks in this process; the contenders are threads with one clock."""

    def __init__(self) -> None:
        self._memory = MemoryBackend()
        self._fault = LostReply()
        self._fault.has_begun = True

    def backend(self) -> Backend:
        return Wrapped(self._memory, lambda verb, request: self._fault.around(self._memory, verb, request))

    def observer(self) -> Backend:
        return self._memory

    def contender(self, mapping: Mapping[str, str], events: str, *, skew_s: float = 0) -> Contender:
        assert skew_s == 0
        return ThreadContender(mapping, events, self._memory)

    def lose(self, fault: LostReply) -> None:
        self._fault = fault

    def forget(self, lock: str) -> None:
        del self._memory._records[lock]


class S3:
    """Locks on an S3 with a port of its own."""

    def __init__(self, server: EmbeddedS3) -> None:
        self.server, self._space = server, f"s3-{uuid.uuid4().hex}"
        self._observing = _observer_of_s3(server)
        server.wire.clear_rules()
        self._observing.create_bucket(Bucket=self._space)
        server.wire.clear_trace()

    def backend(self) -> S3Backend:
        return S3Backend(
            S3ObjectStore(_client_of_s3(self.server), self._space, sleep=_at_once), server=self.server.endpoint
        )

    def observer(self) -> Backend:
        return S3Backend(S3ObjectStore(self._observing, self._space), server="")

    def contender(self, mapping: Mapping[str, str], events: str, *, skew_s: float = 0) -> Contender:
        named = {**mapping, "job.coordinator.backend": f"s3://{self._space}"}
        return ProcessContender(named, events, self.server.environment(), skew_s=skew_s)

    def lose(self, fault: LostReply) -> None:
        self.server.wire.add(Rule(Match(), fault, times=None))

    def restarted(self) -> AbstractContextManager[None]:
        """Stop the server for a block; it restarts with the same data."""
        return _restarted(self.server)

    def forget(self, lock: str) -> None:
        self._observing.delete_object(Bucket=self._space, Key=f"locks/{lock}.json")


class DynamoDB:
    """Locks in a table of a server's DynamoDB, which makes and deletes tables as AWS's does: after its answer."""

    def __init__(self, server: EmbeddedS3) -> None:
        self.server, self._space = server, f"locks-{uuid.uuid4().hex}"
        self._observing = _dynamodb_client(server, OBSERVER)
        server.wire.clear_rules()
        self._observing.create_table(
            TableName=self._space,
            AttributeDefinitions=ATTRIBUTES,
            KeySchema=KEYS,
            BillingMode="PAY_PER_REQUEST",
        )
        assert until(lambda: self._state() == "ACTIVE")
        server.wire.clear_trace()

    def backend(self) -> DynamoDBBackend:
        return DynamoDBBackend(
            _dynamodb_client(self.server, CREDENTIALS["AWS_ACCESS_KEY_ID"]),
            self._space,
            server=self.server.endpoint,
            sleep=_nap,
        )

    def observer(self) -> Backend:
        return DynamoDBBackend(self._observing, self._space, server="")

    def contender(self, mapping: Mapping[str, str], events: str, *, skew_s: float = 0) -> Contender:
        named = {**mapping, "job.coordinator.backend": f"dynamodb://{self._space}"}
        environment = {**CREDENTIALS, "AWS_ENDPOINT_URL_DYNAMODB": self.server.endpoint}
        return ProcessContender(named, events, environment, skew_s=skew_s)

    def lose(self, fault: LostReply) -> None:
        self.server.wire.add(Rule(Match(), fault, times=None))

    def restarted(self) -> AbstractContextManager[None]:
        """Stop the server for a block; it restarts with the same data."""
        return _restarted(self.server)

    def forget(self, lock: str) -> None:
        self._observing.delete_item(TableName=self._space, Key={"lock": {"S": lock}})

    def drop(self) -> None:
        """Delete the table."""
        self._observing.delete_table(TableName=self._space)
        assert until(lambda: self._state() is None)

    def _state(self) -> str | None:
        try:
            return str(self._observing.describe_table(TableName=self._space)["Table"]["TableStatus"])
        except self._observing.exceptions.ResourceNotFoundException:
            return None


# Creating a client takes a third of a second.
_client_of_s3 = functools.cache(EmbeddedS3.client)
_observer_of_s3 = functools.cache(EmbeddedS3.observer)


@functools.cache
def _dynamodb_client(server: EmbeddedS3, access_key: str) -> Any:
    session = boto3.session.Session(
        aws_access_key_id=access_key,
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region_name=REGION,
    )
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=150, proxies={})
    return client_of("dynamodb", config, endpoint=server.endpoint, session=session)


def _at_once(_: float) -> None:
    """Retry without a pause."""


def _nap(seconds: float) -> None:
    """Pause between two polls, but not between two attempts of one request."""
    if seconds not in PAUSES_S:
        time.sleep(seconds)


class Servers(Protocol):
    """Returns the server of a fixture's name, started on first use."""

    def __call__(self, fixture: str, /) -> Any: ...


@contextlib.contextmanager
def _memory(_: Servers) -> Iterator[Service]:
    yield Memory()


@contextlib.contextmanager
def _s3(servers: Servers) -> Iterator[Service]:
    yield S3(servers("server"))


@contextlib.contextmanager
def _dynamodb(fixture: str, servers: Servers) -> Iterator[Service]:
    yield DynamoDB(servers(fixture))


@contextlib.contextmanager
def _zookeeper(fixture: str, servers: Servers) -> Iterator[Service]:
    with contextlib.closing(ZooKeeperLocks(servers(fixture).hosts)) as service:
        yield service


class Share(IntEnum):
    """How much of the suite `scripts/test` runs on a service; the rest has the mark `matrix`."""

    NOTHING = 0
    PROMISES = 1
    """The promises of a backend by itself, and what is asked on the wire."""
    MOST = 2
    """All but most tests with processes."""
    ALL = 3


class Entry(NamedTuple):
    """How to start an empty service, and the tests that do not apply to it, each with the reason."""

    begin: Callable[[Servers], AbstractContextManager[Service]]
    lacks: Mapping[str, str] = {}
    share: Share = Share.ALL


SERVICES: Final = {
    "memory": Entry(_memory),
    "s3": Entry(_s3),
    "dynamodb": Entry(functools.partial(_dynamodb, "server"), share=Share.MOST),
    "dynalite": Entry(functools.partial(_dynamodb, "dynalite"), share=Share.PROMISES),
    "account": Entry(functools.partial(_dynamodb, "account"), share=Share.PROMISES),
    "zookeeper": Entry(functools.partial(_zookeeper, "zookeeper"), LACKS, Share.MOST),
    "ensemble": Entry(functools.partial(_zookeeper, "ensemble"), LACKS, Share.NOTHING),
    "debian": Entry(functools.partial(_zookeeper, "debian"), LACKS, Share.NOTHING),
}
"""To add a backend, add a line here and a class like those above. An ensemble is three of PySpark's ZooKeeper, or of
Debian's.
"""
DYNAMODBS: Final = ("dynamodb", "dynalite", "account")
"""One service on three servers: moto, which applies one request at a time, dynalite and ministack."""


@contextlib.contextmanager
def _restarted(server: EmbeddedS3) -> Iterator[None]:
    port = server.port
    server._server.stop()
    yield
    server._server = KeepAliveServer(server.wire, port)
    server._server.start()
