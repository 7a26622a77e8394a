"""A job that takes its turn, prints `held`, and holds it until its input ends: `python -m … BACKEND LOCK LEASE_S`."""

from __future__ import annotations

import sys

from safewriter.coordination import JobCoordinator


def main(backend: str, lock: str, lease_s: str) -> None:
    keys = {"backend": backend, "lock.name": lock, "name": "Holder", "lease.seconds": lease_s}
    coordinator = JobCoordinator.from_mapping({f"job.coordinator.{key}": value for key, value in keys.items()})
    with coordinator.turn():
        print("held", flush=True)  # noqa: T201 - it talks to the test
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
