"""A ZooKeeper server for each module of tests, and sessions that end with a test."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.zookeeper import start_zookeeper
from tests.support.zookeeper_locks import connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.backends.zookeeper import ZooKeeperBackend
    from tests.support.zookeeper_server import ZooKeeper


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with start_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def lock() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def opened() -> Iterator[Callable[[str], ZooKeeperBackend]]:
    with ExitStack() as stack:
        yield lambda uri: stack.enter_context(connected(uri))


@pytest.fixture
def backend(server: ZooKeeper, opened: Callable[[str], ZooKeeperBackend]) -> ZooKeeperBackend:
    return opened(server.uri)


@pytest.fixture
def other(server: ZooKeeper, opened: Callable[[str], ZooKeeperBackend]) -> ZooKeeperBackend:
    return opened(server.uri)
