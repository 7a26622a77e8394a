"""The embedded S3 (and Iceberg catalog) as a background process, found by its state file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.runs.store import digest_of
from scripts.local.detached import alone, end, start
from soal.console.problem import Problem
from soal.local.state import LocalS3, running

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from soal.home import Home

_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 10.0
_RUN_LOG: Final = "run-{}.log"


def ensure_up(home: Home, *, port: int, buckets: Sequence[str], iceberg: bool = False) -> tuple[LocalS3, bool]:
    """Start the local S3 if none runs; return it, and whether this call started it.

    Raises `Problem` if it cannot be started, or runs with other options.
    """
    words = ["--port", str(port), *(word for bucket in buckets for word in ("--bucket", bucket))]
    words += ["--iceberg"] if iceberg else []
    todo = "if the port is taken, leave --port out"
    with alone(home):
        state, is_new = start(
            LocalS3, home.state, home.log, words, name="the local S3", todo=todo, timeout_s=_START_TIMEOUT_S
        )
    if is_new:
        return state, True
    if port and not state.endpoint.endswith(f":{port}"):
        raise Problem(f"a local S3 runs already, at {state.endpoint}", todo="end it with: soal local down")
    missing = sorted(set(buckets) - set(state.buckets))
    if missing:
        raise Problem(
            f"the local S3 that runs was started without the bucket {missing[0]}", todo="end it with: soal local down"
        )
    if iceberg and state.catalog is None:
        raise Problem(
            "the local S3 that runs was started without an Iceberg catalog", todo="end it with: soal local down"
        )
    return state, False


def ensure_down(home: Home) -> LocalS3 | None:
    """Stop the local S3 with all its processes, and delete the logs of runs; return its state, or None if it did not
    run.
    """
    with alone(home):
        state = running(home)
        end(state, timeout_s=_END_TIMEOUT_S)
        home.state.unlink(missing_ok=True)
        for log in home.log.parent.glob(_RUN_LOG.format("*")):
            log.unlink(missing_ok=True)
        return state


def log_of_run(home: Home, run_key: str) -> Path:
    """Return the file with the log of all attempts of a run on the local S3. Its folder exists while the S3 runs."""
    return home.log.with_name(_RUN_LOG.format(digest_of(run_key)))
