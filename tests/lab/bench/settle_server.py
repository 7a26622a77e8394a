"""The S3 of the benchmarks of settling: SeaweedFS itself, without a layer that traces or delays."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from scripts.emulator.seaweedfs import SeaweedFS
from soal.local.names import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CHECKPOINTS", "LAKE", "served"]

LAKE: Final = "bench-lake"
CHECKPOINTS: Final = "bench-checkpoints"


@contextmanager
def served() -> Iterator[SeaweedFS]:
    """Run a server with both buckets, which this process and its children reach by their environment."""
    with SeaweedFS() as server:
        for bucket in (LAKE, CHECKPOINTS):
            server.make_bucket(bucket)
        with patch.dict(os.environ, CREDENTIALS, AWS_ENDPOINT_URL_S3=server.endpoint):
            yield server
