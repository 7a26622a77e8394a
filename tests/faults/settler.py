"""Settles writes without Spark, each in a process of its own, to be killed: `python settler.py delta|iceberg`.

It imports everything slow before it forks.
"""

from __future__ import annotations

import importlib
import os
import sys

from safewriter.deadline import epoch_ms
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.recovery import Cause, Recovery


def main() -> None:
    """Warm up, print `ready`; for each line settle the write that it names, print `settled N`, and always `ended N`."""
    importlib.import_module(f"safewriter.tables.{sys.argv[1]}.table")
    print("ready", flush=True)  # noqa: T201 - how it talks to the test
    for number, line in enumerate(sys.stdin, start=1):
        child = os.fork()
        if child == 0:
            settle(line.strip())
            print(f"settled {number}", flush=True)  # noqa: T201 - as above
            os._exit(0)
        os.waitpid(child, 0)
        print(f"ended {number}", flush=True)  # noqa: T201 - as above


def settle(write_key: str) -> None:
    """Settle a write and clean up after it."""
    checkpoints = Checkpoints(open_store(Location.parse(f"s3://{os.environ['SW_CHECKPOINT_BUCKET']}")))
    recovery = Recovery(checkpoints, table_store, clock=epoch_ms)
    recovery.settle(write_key, Cause.KILLED)
    recovery.clean(write_key)


if __name__ == "__main__":
    main()
