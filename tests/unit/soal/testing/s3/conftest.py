"""One server for each file of this folder, empty at the beginning of each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake"]) as running:
        yield running


@pytest.fixture
def s3(server: EmbeddedS3) -> EmbeddedS3:
    server.reset()
    return server
