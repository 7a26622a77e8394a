"""A process that settles one dead write and does nothing else, and reports its time and memory."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from safewriter.deadline import epoch_ms
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.recovery import Cause, Recovery

__all__ = ["Measured"]

_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")


@dataclass(frozen=True, slots=True)
class Measured:
    """The verdict, its time and memory; `verdict_ms` includes the loading of the libraries."""

    status: str
    verdict_ms: float
    peak_mb: float


def main() -> None:
    """Settle the write that the arguments name, bucket and key; print a `Measured` as JSON."""
    bucket, key = sys.argv[1:]
    recovery = Recovery(Checkpoints(open_store(Location(bucket))), table_store, clock=epoch_ms)
    began = time.monotonic_ns()
    stored = recovery.settle(key, Cause.KILLED)
    taken_ms = (time.monotonic_ns() - began) / 1e6
    # Not getrusage: it reports the peak of the parent process if that was larger.
    peak = _PEAK.search(Path("/proc/self/status").read_text())
    if stored is None or peak is None:
        raise SystemExit(f"{key}: no document, or no /proc")
    print(json.dumps(asdict(Measured(stored.document.status, taken_ms, int(peak[1]) / 1024))))


if __name__ == "__main__":
    main()
