"""An S3 in a process of its own, until its input ends: `python -m tests.lab.bench.s3_server BUCKET`.

It answers each line: `{"latency_ms": 30}` delays every answer by that time and begins a new trace; `{"trace": true}`
returns the requests since then.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.rules import Delay, Match, Rule
from tests.lab.processes import answer, asked

__all__: list[str] = []

# Objects stay in memory: this S3 shares the jobs' cores, and files on disk would make it half as slow again.
_IN_MEMORY: Final = {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(1 << 30)}

if __name__ == "__main__":
    os.environ.update(_IN_MEMORY)
    with EmbeddedS3(buckets=sys.argv[1:]) as server:
        answer(environment=server.environment())
        for question in asked():
            if "latency_ms" in question:
                server.wire.clear_rules()
                if question["latency_ms"]:
                    server.wire.add(Rule(Match(), Delay(question["latency_ms"]), times=None))
                server.wire.clear_trace()
                answer()
            else:
                answer(
                    trace=[[one.operation, one.bucket, one.key, one.started_ns, one.ended_ns] for one in server.trace()]
                )
