"""The same guarded job on a Spark standalone cluster: one master, one worker, executors in processes of their own."""

from __future__ import annotations

import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from soal.testing.s3.embedded import EmbeddedS3
from tests.support.cluster import CLUSTER, standalone
from tests.support.lake import CHECKPOINTS, LAKE, Lake
from tests.support.processes import Child

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.matrix]


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as server:
        yield server


@pytest.fixture(scope="module")
def master(s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster"), s3.environment()) as url:
        yield url


def test_a_guarded_job_ends_the_same_on_a_cluster(s3: EmbeddedS3, master: str) -> None:
    """A create, an append and an append that fails: the same rows, verdicts and files as in one process."""
    lake = Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
    environment = {
        **CLUSTER,
        **s3.environment(),
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SOAL_RUN_KEY": uuid.uuid4().hex,
        "PYSPARK_PYTHON": sys.executable,
    }
    with Child("tests.integration.safewriter.cluster_job", master, lake.table, environment=environment) as job:
        assert job.end() == 0, job.said()
    assert job.lines[-3:] == ["create committed", "append committed", "fails rolled_back"]
    assert lake.rows() == 30
    assert lake.operations() == ["WRITE", "WRITE"]
    assert lake.orphans() == set()
    assert all(document.attempt.cleaned for document in lake.documents())
    lake.check()
