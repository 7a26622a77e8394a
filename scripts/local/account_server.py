"""The process behind `soal local up --account`: `python -m scripts.local.account_server STATE IMAGE`, until SIGTERM."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

import psutil

from scripts.account.image import image_of_account
from scripts.account.server import Account
from scripts.image.docker import with_docker
from scripts.local.account import LocalAccount
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place
from soal.console.problem import Problem
from soal.home import Home

_NAME: Final = "local"


def main(state: Path, image: str) -> None:
    """Serve until SIGTERM; the state file is written when requests are answered, and removed at the end."""
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # in every thread: sigwait below takes them
    home = Home.of()
    with (
        with_docker(home) as docker,
        image_of_account(docker, image, home.rie, _NAME) as image_uri,
        Account(docker, ensure_account(Place(ROOT))) as account,
    ):
        own = psutil.Process()
        LocalAccount(
            pid=own.pid,
            started=own.create_time(),
            endpoint=account.endpoint,
            image_uri=image_uri,
            aws=account.aws,
        ).write(state)
        signal.sigwait(ends)
        state.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except Problem as problem:
        sys.exit(problem.told)
