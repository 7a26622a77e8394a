"""dynalite as the DynamoDB behind the wire: a program for Node that nobody here wrote, and that applies requests at
once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from scripts.provision.npm import NODE, ensure_npm
from scripts.provision.place import ROOT, Place
from soal.testing.s3.wire import forward
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from soal.testing.s3.exchange import Reply, Request

__all__ = ["Dynalite"]

_MANIFEST: Final = ROOT / "scripts" / "emulator" / "dynalite"
_PROGRAM: Final = """
const server = require(process.argv[1])({createTableMs: 0, deleteTableMs: 0});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"""


class Dynalite:
    """A context manager: `with Dynalite() as backend, EmbeddedS3(backend=backend) as server: …`.

    It has tables only, and no buckets. The process ends with the block, or with this process, even if it is killed.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._port = ""

    def __enter__(self) -> Self:
        package = ensure_npm(Place(ROOT), "dynalite", _MANIFEST) / "dynalite"
        with ExitStack() as stack:
            log = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-dynalite-"))) / "log"
            owner = (sys.executable, "-P", "-m", "scripts.process_owner", "--folder", str(log.parent))
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [*owner, str(NODE), "-e", _PROGRAM, str(package)],
                    env={"PYTHONPATH": str(ROOT)},
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,  # Ctrl-C is for this process
                )
            stack.callback(_end, process)
            until(lambda: log.read_text().endswith("\n") or process.poll() is not None)
            self._port = log.read_text().strip()
            assert self._port.isdecimal(), self._port
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def answer(self, request: Request) -> Reply:
        return forward(f"127.0.0.1:{self._port}", request, path=request.environ["RAW_URI"])

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        raise NotImplementedError("a DynamoDB has no buckets")

    def reset(self) -> None:
        """Keep the tables: each test has one of its own."""


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(BUSY_S)
