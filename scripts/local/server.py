"""The process of `soal local up`: an embedded S3 with the sample data, and an Iceberg catalog, until SIGTERM.

`python -m scripts.local.server --state FILE [--port N] [--bucket NAME]… [--iceberg]`
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil

from scripts.local.sample import put_sample
from soal.local.names import BUCKETS, WAREHOUSE
from soal.local.state import LocalS3
from soal.testing.s3 import EmbeddedS3


def main() -> None:
    """Serve until SIGTERM. The state file exists while the servers answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=lambda text: Path(text).absolute(), required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bucket", action="append", default=[])
    parser.add_argument("--iceberg", action="store_true")
    arguments = parser.parse_args()
    os.chdir("/")  # do not keep the caller's directory busy
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # in every thread: sigwait below receives them
    buckets = tuple(dict.fromkeys([*BUCKETS, *arguments.bucket]))
    with ExitStack() as stack:
        s3 = stack.enter_context(EmbeddedS3(arguments.port, buckets=buckets))
        put_sample(s3.observer())
        catalog = _catalog(s3, stack) if arguments.iceberg else None
        pid, started = os.getpid(), psutil.Process().create_time()
        state = LocalS3(pid=pid, started=started, endpoint=s3.endpoint, buckets=buckets, catalog=catalog)
        state.write(arguments.state)
        signal.sigwait(ends)
        _remove(arguments.state)


def _catalog(s3: EmbeddedS3, stack: ExitStack) -> str:
    """Start the REST catalog, which ends with the stack; return its URI."""
    from scripts.emulator.rest_catalog import RestCatalog  # imports Py4J, which the S3 does not need

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-catalog-"))
    return stack.enter_context(RestCatalog(s3, Path(folder), WAREHOUSE)).uri


def _remove(path: Path) -> None:
    """Remove the state file if it is still ours."""
    try:
        state = LocalS3.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return
    if state.pid == os.getpid():
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
