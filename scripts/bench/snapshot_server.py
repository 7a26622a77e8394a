"""An S3 in a process of its own, until its input ends: `python -m scripts.bench.snapshot_server BUCKET`."""

from __future__ import annotations

import os
import sys
from typing import Final

from scripts.bench.processes import answer, asked
from scripts.emulator.s3 import EmbeddedS3

__all__: list[str] = []

# Objects stay in memory: this S3 has the cores of the build, and its files on disk would cost it half as much again.
_IN_MEMORY: Final = {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(1 << 30)}

if __name__ == "__main__":
    os.environ.update(_IN_MEMORY)
    with EmbeddedS3(buckets=sys.argv[1:]) as server:
        answer(environment=server.environment())
        for _ in asked():
            pass
