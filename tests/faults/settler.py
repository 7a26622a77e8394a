"""Settles one write in a process of its own, without Spark, to be killed: `python settler.py`."""

from __future__ import annotations

import os
import sys

from safewriter.checkpoint import Checkpoints
from safewriter.deadline import epoch_ms
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.recovery import Cause, Recovery


def main() -> None:
    """Say `ready`, wait for a write key, settle it and clean up, say `settled`."""
    checkpoints = Checkpoints(open_store(Location.parse(f"s3://{os.environ['SW_CHECKPOINT_BUCKET']}")))
    recovery = Recovery(checkpoints, table_store, clock=epoch_ms)
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    write_key = sys.stdin.readline().strip()
    recovery.settle(write_key, Cause.KILLED)
    recovery.clean(write_key)
    print("settled", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
