"""Containers of runc whose memory CRIU saves and copies. Each has a network and a disk of its own, and needs root.

runc finds CRIU by PATH. A container sees the whole file system of this machine, so the program in it is this working
tree's; only below `OWN` it has a file system of its own, which a copy of it has a copy of.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["OWN", "Container", "ContainerError", "Disk", "Network", "problem", "root_file_system"]

OWN: Final = "/srv"
"""The folder of a container's own file system."""
_LOG: Final = f"{OWN}/log"
_DISK_SIZE: Final = "1G"
_CLONE_NEWNET: Final = 0x40000000
_CALL_TIMEOUT_S: Final = 60.0
_CHUNK: Final = 65_536
_TAIL: Final = 6_000
# All that a process needs to start, end and look at others, and to set the clock; CAP_SYS_RESOURCE is not everywhere.
_CAPABILITIES: Final = (
    *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SYS_ADMIN"),
    *("CAP_SYS_PTRACE", "CAP_SYS_TIME"),
)


class ContainerError(Exception):
    """A container could not be started, saved, restored or asked."""


def problem(criu: str) -> str:
    """Return a sentence about what this machine lacks, or "" if it can save and copy a container."""
    if os.geteuid() != 0:
        return "only root may save a container"
    missing = [name for name in (criu, "runc", "ip", "mkfs.ext4", "mount") if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is not installed"
    done = subprocess.run([criu, "check"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"criu check has failed: {done.stderr.strip()[-_TAIL:]}"


@contextlib.contextmanager
def root_file_system(folder: Path) -> Iterator[Path]:
    """Yield a folder that shows the file system of this machine's root, without what is mounted in it."""
    root = folder / "root"
    root.mkdir()
    _run("mount", "--bind", "/", str(root))
    try:
        yield root
    finally:
        _run("umount", "--lazy", str(root))


class Disk:
    """A context manager: an empty file system, or a copy of another disk that is not mounted, at `mount`."""

    def __init__(self, folder: Path, like: Disk | None = None) -> None:
        name = secrets.token_hex(6)
        self.mount = folder / name
        self._file = folder / f"{name}.ext4"
        self._like = like

    def __enter__(self) -> Self:
        self.mount.mkdir()
        if self._like is None:
            _run("truncate", "--size", _DISK_SIZE, str(self._file))
            _run("mkfs.ext4", "-q", str(self._file))
        else:
            _run("cp", "--sparse=always", str(self._like._file), str(self._file))
        _run("mount", "-o", "loop", str(self._file), str(self.mount))
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._file.unlink()

    def release(self) -> None:
        """Unmount it; its file can be copied then."""
        if self.mount.is_mount():
            _run("umount", str(self.mount))


class Network:
    """A context manager: a network with a loopback device only, on which `port` leads to that port of this machine."""

    def __init__(self, port: int) -> None:
        self._name = f"soal-{secrets.token_hex(6)}"
        self._port = port
        self._listener: socket.socket | None = None

    @property
    def path(self) -> str:
        """The file by which a container joins the network."""
        return f"/run/netns/{self._name}"

    def __enter__(self) -> Self:
        _run("ip", "netns", "add", self._name)
        _run("ip", "-n", self._name, "link", "set", "lo", "up")
        self._listener = self.inside(lambda: socket.create_server(("127.0.0.1", self._port)))
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        _run("ip", "netns", "delete", self._name)

    def inside(self, make: Callable[[], socket.socket]) -> socket.socket:
        """Return a socket that a thread makes within the network. Raises `OSError` as `make` does."""
        made: list[socket.socket] = []
        failed: list[OSError] = []

        def enter() -> None:
            try:
                _join(self.path)
                made.append(make())
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return made[0]

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                for source, sink in ((near, far), (far, near)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _join(network: str) -> None:
    """Let this thread's new sockets be in a network."""
    with Path(network).open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@dataclass(frozen=True, slots=True)
class Container:
    """A context manager: a program, started by `start`, or continued by `restore` from a folder that `save` has filled.

    All processes end with the block. `bundle` is a new folder's path.
    """

    bundle: Path
    root: Path
    disk: Disk
    network: Network
    criu: str
    words: Sequence[str]
    variables: Mapping[str, str]

    def __enter__(self) -> Self:
        self.bundle.mkdir()
        (self.bundle / "config.json").write_text(json.dumps(self._config()), encoding="utf-8")
        # An idle connection is closed in a copy, as in a machine that wakes up elsewhere.
        (self.bundle / "criu.conf").write_text("tcp-close\n", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self._runc("delete", "--force", self._id)

    def start(self) -> None:
        """Start the program."""
        self._runc("run", "--detach", "--bundle", str(self.bundle), self._id)

    def save(self, image: Path) -> None:
        """Save the memory of all processes in a folder, and end them."""
        self._runc("checkpoint", *self._places(image), self._id)

    def restore(self, image: Path) -> None:
        """Continue from a folder."""
        self._runc("restore", "--detach", "--bundle", str(self.bundle), *self._places(image), self._id)

    def connection(self, port: int) -> http.client.HTTPConnection:
        """Return a connection to a port of the container. Raises `OSError` if nobody listens there."""
        made = http.client.HTTPConnection("127.0.0.1", port, timeout=_CALL_TIMEOUT_S)
        made.sock = self.network.inside(lambda: socket.create_connection(("127.0.0.1", port), _CALL_TIMEOUT_S))
        return made

    def tail(self) -> str:
        """Return the end of the program's log."""
        log = self.disk.mount / Path(_LOG).name
        return log.read_text(encoding="utf-8", errors="replace")[-_TAIL:] if log.exists() else ""

    @property
    def _id(self) -> str:
        return self.bundle.name

    def _places(self, image: Path) -> tuple[str, ...]:
        return ("--file-locks", "--image-path", str(image), "--work-path", str(self.bundle))

    def _runc(self, *words: str) -> None:
        said = self.bundle / "runc.out"  # a pipe would stay open as long as the container
        environment = {**os.environ, "PATH": f"{Path(self.criu).parent}:{os.environ['PATH']}"}
        with said.open("wb") as file:
            done = subprocess.run(
                ["runc", *words], env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False
            )
        if done.returncode != 0:
            logs = (said, *self.bundle.glob("*.log"))
            texts = "\n".join(log.read_text(encoding="utf-8", errors="replace")[-_TAIL:] for log in logs)
            raise ContainerError(f"runc {words[0]} has failed:\n{texts}")

    def _config(self) -> dict[str, Any]:
        """Return the container's description: https://github.com/opencontainers/runtime-spec."""
        quiet = f'exec "$@" > {_LOG} 2>&1 < /dev/null'
        namespaces = [{"type": name} for name in ("pid", "mount", "ipc", "uts")]
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": 0, "gid": 0},
                "args": ["/bin/sh", "-c", quiet, "sh", *self.words],
                "env": [f"{name}={value}" for name, value in self.variables.items()],
                "cwd": str(ROOT),
                "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES),
            },
            "root": {"path": str(self.root)},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                {"destination": "/dev/shm", "type": "tmpfs", "source": "shm"},
                {"destination": OWN, "type": "bind", "source": str(self.disk.mount), "options": ["bind"]},
            ],
            "annotations": {"org.criu.config": str(self.bundle / "criu.conf")},
            "linux": {"namespaces": [*namespaces, {"type": "network", "path": self.network.path}]},
        }


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ContainerError(f"{' '.join(words)}: {done.stderr.strip()}")
