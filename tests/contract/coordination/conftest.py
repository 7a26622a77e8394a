"""One suite for all lock services: a test that takes `arena` runs on each of them.

A test that takes `thorough` or `served` starts processes, which takes seconds: `scripts/test` runs it on memory and S3,
and on the other services only with the mark `matrix`. The second and third DynamoDB have there what takes `promising`,
`on_wire` or `on_dynamodb`. All tests on all of them: `scripts/test tests/contract/coordination -m ''`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soal.testing.s3 import EmbeddedS3
from tests.support import zookeeper_ensemble
from tests.support.account_tables import AccountTables, account_without_docker
from tests.support.dynalite import Dynalite
from tests.support.lock_arena import Arena
from tests.support.lock_services import DYNAMODBS, S3, SERVICES, Share
from tests.support.zookeeper import start_zookeeper
from tests.support.zookeeper_ensemble import Ensemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from tests.support.zookeeper_server import ZooKeeper


def _sharing(least: Share, names: Iterable[str] = SERVICES) -> list[ParameterSet]:
    """Return services as parameters: those with a smaller share are for the matrix."""
    return [pytest.param(name, marks=[] if SERVICES[name].share >= least else [pytest.mark.matrix]) for name in names]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    """The S3 and the DynamoDB, on a port of its own."""
    with EmbeddedS3() as server:
        yield server


@pytest.fixture(scope="session")
def dynalite() -> Iterator[EmbeddedS3]:
    """A second DynamoDB, for Node."""
    with Dynalite() as backend, EmbeddedS3(backend=backend) as server:
        yield server


@pytest.fixture(scope="session")
def account() -> Iterator[EmbeddedS3]:
    """A third DynamoDB: that of an account on this machine."""
    with account_without_docker() as account, EmbeddedS3(backend=AccountTables(account)) as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One server for all tests, whose shortest session is shorter than every lease here."""
    with start_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers of the ZooKeeper that PySpark brings along."""
    with Ensemble(tmp_path_factory.mktemp("ensemble")) as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers of Debian's ZooKeeper."""
    with Ensemble(tmp_path_factory.mktemp("debian"), classpath=zookeeper_ensemble.debian()) as ensemble:
        yield ensemble


def _begun(request: pytest.FixtureRequest, folder: Path) -> Iterator[Arena]:
    begin, lacks, _ = SERVICES[request.param]
    if reason := lacks.get(request.node.name) or lacks.get(request.node.originalname):
        pytest.skip(reason)
    with begin(request.getfixturevalue) as service:
        arena = Arena(service, folder)
        yield arena
        arena.end()


@pytest.fixture(params=_sharing(Share.PROMISES))
def promising(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """Every service; outside the matrix each but the ensemble."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=_sharing(Share.MOST))
def arena(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """Every service; outside the matrix one server of each."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=_sharing(Share.ALL))
def thorough(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """Every service, for tests with processes: outside the matrix only memory and S3."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=_sharing(Share.ALL, [name for name in SERVICES if name != "memory"]))
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """The same without memory, whose contenders are no processes."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=["s3", *DYNAMODBS])
def on_wire(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """Each service whose requests can be counted and modified on the wire."""
    yield from _begun(request, tmp_path)


@pytest.fixture(params=DYNAMODBS)
def on_dynamodb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    """DynamoDB alone, on every server."""
    yield from _begun(request, tmp_path)


@pytest.fixture
def on_s3(server: EmbeddedS3, tmp_path: Path) -> Arena:
    """S3 alone."""
    return Arena(S3(server), tmp_path)
