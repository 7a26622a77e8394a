"""The process of a MicroVM: `python -m handler.microvm`. It serves the hooks, warms up, and runs the job of its event.

SOAL_TIMEOUT_S is the MicroVM's maximum duration, as `run-microvm --maximum-duration-in-seconds` gives it;
SOAL_MEMORY_MB the memory that jobs may use.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.microvm.hooks import server_of
from handler.microvm.job import Jobs
from handler.microvm.lifecycle import Lifecycle
from handler.microvm.warm_up import WarmUp, warm_up_folder
from handler.services import Services
from handler.spark.installation import default_home

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__: list[str] = []

_PORT: Final = 9000
_MEMORY_MB: Final = "2048"
"""The memory of a MicroVM of the default size."""


def main(words: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m handler.microvm")
    parser.add_argument("--port", type=int, default=_PORT, help="the port of the hooks")
    parser.add_argument("--rounds", type=int, default=16, help="the number of warm-up jobs")
    parser.add_argument("--no-lessons", action="store_true", help="warm up without what few jobs use")
    parser.add_argument("--s3-python", default=sys.executable, help="the interpreter of the warm-up's S3")
    options = parser.parse_args(words)
    if region := os.environ.get("AWS_REGION"):
        os.environ.setdefault("AWS_DEFAULT_REGION", region)  # boto3 reads this one, and Lambda sets the other
    environment = dict(os.environ)
    memory_mb = environment.get("SOAL_MEMORY_MB") or _MEMORY_MB
    if not (memory_mb.isascii() and memory_mb.isdigit() and int(memory_mb)):
        parser.error(f"SOAL_MEMORY_MB: {memory_mb!r} is not a number of megabytes, 1 at least")
    home = environment.get("SOAL_HOME")
    folder = warm_up_folder(Path(home) if home else default_home())
    jobs = Jobs(
        environment,
        int(memory_mb),
        Services(),
        WarmUp(folder, options.rounds, lessons=not options.no_lessons, python=options.s3_python),
    )
    life = Lifecycle(jobs)
    server = server_of(options.port, life.hooks)
    signal.signal(signal.SIGTERM, lambda *_: life.stop())
    threading.Thread(target=server.serve_forever, name="soal-hooks", daemon=True).start()
    life.serve()
    server.shutdown()


if __name__ == "__main__":
    main()
