"""Victims for each format, and the fixtures of this folder."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.faults.victims import Victims
from tests.support.lake import CHECKPOINTS, Lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog
    from tests.support.processes import Child


@pytest.fixture(scope="session")
def victims(s3: EmbeddedS3) -> Iterator[Victims]:
    pool = Victims(s3, "tests.faults.victim")
    yield pool
    pool.close()


@pytest.fixture
def victim(victims: Victims, s3: EmbeddedS3) -> Iterator[Child]:
    child = victims.take()
    s3.wire.clear_rules()
    with child:
        yield child
    s3.wire.clear_rules()


@pytest.fixture
def run_key(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The run of victim and retry. The test controls the store's clock, which runs ahead once the victim is dead."""
    key = f"fault-{uuid.uuid4().hex}"
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", CHECKPOINTS)
    monkeypatch.setenv("SOAL_RUN_KEY", key)
    yield key
    s3.wire.clock_ahead_s = 0


@pytest.fixture
def lake(s3: EmbeddedS3) -> Callable[[], Lake]:
    return lambda: Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")


@pytest.fixture(scope="module", params=["lite", "rest"])
def catalog(request: pytest.FixtureRequest) -> Catalog:
    """A commit in `lite` happens between two requests; in `rest` it is a request, and its server makes some, too."""
    found: Catalog = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def iceberg_victims(s3: EmbeddedS3, catalog: Catalog) -> Iterator[Victims]:
    pool = Victims(s3, "tests.faults.iceberg_victim", json.dumps(catalog.settings()))
    yield pool
    pool.close()


@pytest.fixture(scope="session")
def snapshot_victims(s3: EmbeddedS3) -> Iterator[Victims]:
    pool = Victims(s3, "tests.faults.snapshot_victim")
    yield pool
    pool.close()
