"""One suite for all lock services: a test that takes `arena` runs on each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.emulator import EmbeddedS3
from tests.support.lock_arena import Arena
from tests.support.lock_services import S3, SERVICES, DynamoDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    """The S3 and the DynamoDB, on a port of its own."""
    with EmbeddedS3() as server:
        yield server


@pytest.fixture(params=SERVICES)
def arena(request: pytest.FixtureRequest, server: EmbeddedS3, tmp_path: Path) -> Iterator[Arena]:
    """Every service."""
    with SERVICES[request.param](server) as service:
        arena = Arena(service, tmp_path)
        yield arena
        arena.end()


@pytest.fixture(params=[name for name in SERVICES if name != "memory"])
def served(request: pytest.FixtureRequest, server: EmbeddedS3, tmp_path: Path) -> Iterator[Arena]:
    """Every service with processes as contenders."""
    with SERVICES[request.param](server) as service:
        arena = Arena(service, tmp_path)
        yield arena
        arena.end()


@pytest.fixture(params=[S3, DynamoDB])
def on_wire(request: pytest.FixtureRequest, server: EmbeddedS3, tmp_path: Path) -> Arena:
    """Each service whose requests can be counted and changed on their way."""
    return Arena(request.param(server), tmp_path)


@pytest.fixture
def on_dynamodb(server: EmbeddedS3, tmp_path: Path) -> Arena:
    """DynamoDB alone."""
    return Arena(DynamoDB(server), tmp_path)


@pytest.fixture
def on_s3(server: EmbeddedS3, tmp_path: Path) -> Arena:
    """S3 alone."""
    return Arena(S3(server), tmp_path)
