"""The image under test (the variable IMAGE_UNDER_TEST, which `soal image test` sets), and an S3 for its jobs."""

from __future__ import annotations

import json
import os
import textwrap
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from handler.spark.missing_dependencies import SLIM
from scripts.emulator.container import Confinement, ContainerEmulator
from scripts.image.build import tag_of
from scripts.image.docker import Docker, with_docker
from scripts.image.size import variant_of
from soal.home import Home
from soal.testing.s3 import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scripts.emulator.rie import LambdaEmulator

SCRIPTS = "soal-scripts"


@pytest.fixture(scope="session")
def image() -> str:
    return os.environ.get("IMAGE_UNDER_TEST", tag_of(SLIM))


@pytest.fixture(scope="session")
def daemon(image: str) -> Iterator[Docker]:
    with with_docker(Home.of()) as found:
        assert found.has(image), f"docker has no image {image}; build it with: soal image build"
        yield found


@pytest.fixture(scope="session")
def variant(daemon: Docker, image: str) -> str:
    """The variant that the image declares."""
    return variant_of(daemon, image)


@pytest.fixture(scope="session")
def lake() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        yield server


class Cage:
    """Makes functions of the image under test, and runs scripts in them."""

    def __init__(self, daemon: Docker, image: str, lake: EmbeddedS3) -> None:
        self._daemon = daemon
        self._image = image
        self._lake = lake

    @property
    def variables(self) -> dict[str, str]:
        return {**self._lake.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SOAL_ERRORS": "return"}

    def function(
        self,
        variables: Mapping[str, str] | None = None,
        *,
        timeout_s: int = 120,
        memory_mb: int = 2048,
        confinement: Confinement | None = None,
        mounts: Sequence[str] = (),
    ) -> ContainerEmulator:
        return ContainerEmulator(
            self._daemon,
            self._image,
            {**self.variables, **(variables or {})},
            timeout_s=timeout_s,
            memory_mb=memory_mb,
            confinement=confinement,
            mounts=mounts,
        )

    def run(self, function: LambdaEmulator, script: str, **fields: object) -> Result:
        """Run the text of a script; the answer must be SoAL's."""
        body = textwrap.dedent(script).encode()
        self._lake.observer().put_object(Bucket=SCRIPTS, Key="job.py", Body=body)
        answer = function.invoke({"entryPoint": f"s3://{SCRIPTS}/job.py", **fields})
        assert answer.error is None, answer.error
        assert not answer.timed_out, function.tail()
        return Result.model_validate(json.loads(json.dumps(answer.payload)))


@pytest.fixture(scope="session")
def cage(daemon: Docker, image: str, lake: EmbeddedS3) -> Cage:
    return Cage(daemon, image, lake)
