"""The process of `soal local up`, until SIGTERM: an embedded S3 with the sample data, and an Iceberg catalog; or with
`--account IMAGE` an AWS account, which has that image.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from scripts.local.sample import put_sample
from soal.console.problem import Problem
from soal.home import Home
from soal.local.names import BUCKETS, WAREHOUSE
from soal.local.state import Background, LocalS3
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from scripts.local.account import LocalAccount

_NAME: Final = "local"
"""The image's tag in an account's registry."""


def main() -> None:
    """Serve until SIGTERM. The state file exists while the servers answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=lambda text: Path(text).absolute(), required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bucket", action="append", default=[])
    parser.add_argument("--iceberg", action="store_true")
    parser.add_argument("--account", metavar="IMAGE")
    arguments = parser.parse_args()
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # in every thread: sigwait below receives them
    process = Background(pid=os.getpid(), started=psutil.Process().create_time(), endpoint="")
    with ExitStack() as stack:
        state = _account(arguments.account, process, stack) if arguments.account else _s3(arguments, process, stack)
        state.write(arguments.state)
        signal.sigwait(ends)
        found = Background.running(arguments.state)
        if found is not None and found.pid == process.pid:  # it may be that of another one by now
            arguments.state.unlink(missing_ok=True)


def _s3(arguments: argparse.Namespace, process: Background, stack: ExitStack) -> LocalS3:
    """Start the S3, which ends with the stack."""
    os.chdir("/")  # do not keep the caller's directory busy
    buckets = tuple(dict.fromkeys([*BUCKETS, *arguments.bucket]))
    s3 = stack.enter_context(EmbeddedS3(arguments.port, buckets=buckets))
    put_sample(s3.observer())
    catalog = _catalog(s3, stack) if arguments.iceberg else None
    own = {"endpoint": s3.endpoint, "buckets": buckets, "catalog": catalog}
    return LocalS3.model_validate(process.model_dump() | own)


def _catalog(s3: EmbeddedS3, stack: ExitStack) -> str:
    """Start the REST catalog, which ends with the stack; return its URI."""
    from scripts.emulator.rest_catalog import RestCatalog  # imports Py4J, which the S3 does not need

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-catalog-"))
    return stack.enter_context(RestCatalog(s3, Path(folder), WAREHOUSE)).uri


def _account(image: str, process: Background, stack: ExitStack) -> LocalAccount:
    """Start the account, which ends with the stack."""
    from scripts.account.image import image_of_account  # Docker and CDK, which the S3 does not need
    from scripts.account.server import Account
    from scripts.image.docker import with_docker
    from scripts.local.account import LocalAccount
    from scripts.provision.account import ensure_account
    from scripts.provision.place import ROOT, Place

    home = Home.of()
    docker = stack.enter_context(with_docker(home))
    image_uri = stack.enter_context(image_of_account(docker, image, home.rie, _NAME))
    account = stack.enter_context(Account(docker, ensure_account(Place(ROOT))))
    own = {"endpoint": account.endpoint, "image_uri": image_uri, "aws": account.aws}
    return LocalAccount.model_validate(process.model_dump() | own)


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(problem.told)
