"""Our own Docker daemon, for a machine where none runs: as root, on a private socket.

It serves all concurrent commands of this working tree, and ends with the last of them, even if that is killed: each
command holds a shared lock on a file, and the daemon's keeper waits for the exclusive lock. Images stay in
`.soal/docker`. Containers use the host's network: the daemon touches neither bridges nor iptables.

It stays because inside a container, where no service starts Docker, `soal image build` and `soal image test` would
otherwise not work.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.process.tree import become_subreaper, end_all
from scripts.provision.place import ROOT
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "/run/soal-docker-"
_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.05
_TAIL: Final = 2000


@dataclass(frozen=True, slots=True)
class Ground:
    """The folders of our daemon: images in `data`, other files in `run`, whose path must be short."""

    data: Path
    run: Path

    @classmethod
    def of(cls, home: Path) -> Ground:
        """Return the folders for a working tree's `.soal`."""
        name = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]
        return cls(home.resolve() / "docker", Path(f"{_PREFIX}{name}"))

    @property
    def socket(self) -> Path:
        return self.run / "docker.sock"

    @property
    def log(self) -> Path:
        return self.run / "dockerd.log"

    def answers(self) -> bool:
        """Return whether a daemon listens."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True


def is_own(host: str | None) -> bool:
    """Return whether the daemon at an address is ours, even if another process started it."""
    return host is not None and host.startswith(f"unix://{_PREFIX}")


@contextlib.contextmanager
def own_daemon(home: Path) -> Iterator[str]:
    """Start the daemon, or join one that another command has started; yield its address for DOCKER_HOST.

    Raises `Failure` if that is not possible.
    """
    if os.geteuid() != 0:
        raise Failure(
            "no Docker daemon answers, and only root can start one",
            todo="start Docker, set DOCKER_HOST, or become a member of the group docker",
        )
    if shutil.which("dockerd") is None:
        raise Failure(
            "no Docker daemon answers, and there is no dockerd on the path to start one",
            todo="start Docker, or install it (Debian: apt install docker.io)",
        )
    ground = Ground.of(home)
    ground.data.mkdir(parents=True, exist_ok=True)
    ground.run.mkdir(mode=0o700, exist_ok=True)
    with (ground.run / "use.lock").open("w", encoding="ascii") as use:
        with (ground.run / "start.lock").open("w", encoding="ascii") as start:
            fcntl.flock(start, fcntl.LOCK_EX)
            fcntl.flock(use, fcntl.LOCK_SH)  # waits while a keeper stops its daemon
            if not ground.answers():
                _start(ground)
        yield f"unix://{ground.socket}"


def _start(ground: Ground) -> None:
    """Start a keeper, and wait until its daemon answers."""
    with ground.log.open("wb") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "scripts.image.daemon", str(ground.data), str(ground.run)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the command
        )
    until = time.monotonic() + _START_TIMEOUT_S
    while not ground.answers():
        if keeper.poll() is not None or time.monotonic() > until:
            output = ground.log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
            raise Failure(
                f"dockerd did not start:\n{output}",
                todo="see above; where the kernel forbids it, build on another machine",
            )
        time.sleep(_POLL_S)


def main(ground: Ground) -> int:
    """Run a daemon until no command uses it, or until it ends by itself."""
    become_subreaper()  # containers' processes leave the daemon's tree and become our children
    daemon = subprocess.Popen(
        [
            "dockerd",
            *("--host", f"unix://{ground.socket}"),
            *("--data-root", str(ground.data)),
            *("--exec-root", str(ground.run / "exec")),
            *("--pidfile", str(ground.run / "docker.pid")),
            *("--bridge", "none", "--iptables=false", "--log-level", "warn"),
        ],
        stdin=subprocess.DEVNULL,
    )
    ending = threading.Event()
    threading.Thread(target=_leave_with, args=(daemon, ending), daemon=True).start()
    with (ground.run / "use.lock").open("w", encoding="ascii") as use:
        fcntl.flock(use, fcntl.LOCK_EX)
        ending.set()
        daemon.terminate()
        try:
            daemon.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
        end_all(without=frozenset(), timeout_s=_END_TIMEOUT_S)
        ground.socket.unlink(missing_ok=True)
    return 0


def _leave_with(daemon: subprocess.Popen[bytes], ending: threading.Event) -> None:
    """End the keeper if its daemon ends first; the process that started the keeper waits for either."""
    code = daemon.wait()
    if not ending.is_set():
        os._exit(code or 1)


if __name__ == "__main__":
    sys.exit(main(Ground(Path(sys.argv[1]), Path(sys.argv[2]))))
