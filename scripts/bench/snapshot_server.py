"""An S3 in a process of its own, until its input ends: `python -m scripts.bench.snapshot_server BUCKET`."""

from __future__ import annotations

import sys

from scripts.bench.processes import answer, asked
from scripts.emulator.s3 import EmbeddedS3

__all__: list[str] = []

if __name__ == "__main__":
    with EmbeddedS3(buckets=sys.argv[1:]) as server:
        answer(environment=server.environment())
        for _ in asked():
            pass
