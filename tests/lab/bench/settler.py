"""A process that settles one dead write and does nothing else, and reports its time, its requests and its memory."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Measured", "alone_in_row", "settled_alone"]

_BEGAN: Final = "BENCH_BEGAN_NS"
"""The variable that holds the moment before the process was started, of the monotonic clock."""
_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Measured:
    """One settling, with its clean-up. Times are since the start of the process; `cpu_ms` are of user and system.

    `ready_ms`: until Python, the libraries that every settler needs and a client of S3 were there.
    """

    status: str
    ready_ms: float
    ready_cpu_ms: float
    done_ms: float
    done_cpu_ms: float
    peak_mb: float
    requests: int
    listings: int
    received_bytes: int


def settled_alone(bucket: str, key: str, variables: Mapping[str, str]) -> Measured:
    """Settle a write in a process of its own, whose job has surely ended. `variables`: added to this environment."""
    line = [sys.executable, "-P", "-m", "tests.lab.bench.settler", bucket, key]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    began = {_BEGAN: str(time.monotonic_ns())}
    done = subprocess.run(
        line, env={**os.environ, **path, **variables, **began}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the settler failed: {done.stderr}")
    return Measured(**json.loads(done.stdout))


def alone_in_row(found: Sequence[Measured]) -> dict[str, Any]:
    """Return the fields of a benchmark's row that tell of such processes: medians, and the last one's requests."""
    last = found[-1]
    return {
        "fresh_ms": statistics.median(one.done_ms for one in found),
        "fresh_cpu_ms": statistics.median(one.done_cpu_ms for one in found),
        "ready_ms": statistics.median(one.ready_ms for one in found),
        "ready_cpu_ms": statistics.median(one.ready_cpu_ms for one in found),
        "requests": last.requests,
        "listings": last.listings,
        "received_bytes": last.received_bytes,
    }


def main() -> None:
    """Settle the write that the arguments name, bucket and key; print a `Measured` as JSON."""
    from safewriter.deadline import epoch_ms
    from safewriter.objects.location import Location
    from safewriter.objects.s3 import open_store, table_store
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.settle.recovery import Cause, Evidence, Recovery

    bucket, key = sys.argv[1:]
    recovery = Recovery(Checkpoints(open_store(Location(bucket))), table_store, clock=epoch_ms)
    ready_ms, ready_cpu_ms = _since_start_ms(), time.process_time() * 1000
    from tests.lab.bench.requests import Noted, listings, received_bytes

    noted = Noted()
    stored = recovery.settle(key, Cause.KILLED, Evidence(1, requests_ended=True))
    done_ms, done_cpu_ms = _since_start_ms(), time.process_time() * 1000
    # Not getrusage: it reports the peak of the parent process if that was larger.
    peak = _PEAK.search(Path("/proc/self/status").read_text())
    if stored is None or peak is None:
        raise SystemExit(f"{key}: no document, or no /proc")
    found = Measured(
        status=stored.document.status,
        ready_ms=ready_ms,
        ready_cpu_ms=ready_cpu_ms,
        done_ms=done_ms,
        done_cpu_ms=done_cpu_ms,
        peak_mb=int(peak[1]) / 1024,
        requests=len(noted.requests),
        listings=listings(noted.requests),
        received_bytes=received_bytes(noted.requests),
    )
    print(json.dumps(asdict(found)))


def _since_start_ms() -> float:
    return (time.monotonic_ns() - int(os.environ[_BEGAN])) / 1e6


if __name__ == "__main__":
    main()
