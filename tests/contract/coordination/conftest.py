"""One suite for all lock services: a test that takes `arena` runs on each of them.

A test that takes `thorough` or `served` starts processes, which takes seconds: `scripts/test` runs it on memory and S3,
and on the other services only with the mark `matrix`. All tests on all of them: `scripts/test
tests/contract/coordination -m ''`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soal.testing.s3 import EmbeddedS3
from tests.support.lock_arena import Arena
from tests.support.lock_services import S3, SERVICES, DynamoDB
from tests.support.zookeeper import start_zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.zookeeper_server import ZooKeeper

THOROUGH = [
    pytest.param(name, marks=[pytest.mark.matrix] if entry.is_sampled else []) for name, entry in SERVICES.items()
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    """The S3 and the DynamoDB, on a port of its own."""
    with EmbeddedS3() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One server for all tests, whose shortest session is shorter than every lease here."""
    with start_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def _begun(request: pytest.FixtureRequest, folder: Path) -> Iterator[Arena]:
    begin, lacks, _ = SERVICES[request.param]
    if reason := lacks.get(request.node.name) or lacks.get(request.node.originalname):
        pytest.skip(reason)
    with begin(request.getfixturevalue) as service:
        arena = Arena(service, folder)
        yield arena
        arena.end()


@pytest.fixture(params=SERVICES)
def arena(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """Every service."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=THOROUGH)
def thorough(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """Every service, for tests with processes: outside the matrix only memory and S3."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=THOROUGH[1:])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """The same without memory, whose contenders are no processes."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=[S3, DynamoDB])
def on_wire(request: pytest.FixtureRequest, server: EmbeddedS3, tmp_path: Path) -> Arena:
    """Each service whose requests can be counted and modified on the wire."""
    return Arena(request.param(server), tmp_path)


@pytest.fixture
def on_dynamodb(server: EmbeddedS3, tmp_path: Path) -> Arena:
    """DynamoDB alone."""
    return Arena(DynamoDB(server), tmp_path)


@pytest.fixture
def on_s3(server: EmbeddedS3, tmp_path: Path) -> Arena:
    """S3 alone."""
    return Arena(S3(server), tmp_path)
