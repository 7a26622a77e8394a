"""The function in its container, as Lambda would run it: the emulator of rie.py around the image.

The emulator is mounted, so that the image is exactly the deployed one. The container has the host's network (S3 is on
loopback), a read-only root, `/tmp` in memory, no capabilities, a user without a name, no /dev/shm, and Lambda's limits
for memory and processes.
"""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psutil

from scripts.emulator.rie import LambdaEmulator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from scripts.image.docker import Docker

_USER: Final = 4711
_RIE: Final = "/soal-rie"
_START_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.02
# Variables that would change the docker client are passed by value, on its command line.
_CLIENTS_OWN: Final = re.compile(r"DOCKER_.*|BUILDKIT_.*|PATH|HOME|XDG_.*")


@dataclass(frozen=True, slots=True)
class Confinement:
    """The container's limits. `processes_max` is Lambda's: 1,024 processes and threads."""

    tmp_mb: int = 1024
    tmp_is_executable: bool = True
    user: int = _USER
    processes_max: int = 1024

    def arguments(self, memory_mb: int) -> tuple[str, ...]:
        """Return options of `docker run`."""
        way = "exec" if self.tmp_is_executable else "noexec"
        return (
            *("--network", "host", "--read-only", "--ipc", "none"),
            *("--tmpfs", f"/tmp:rw,{way},nosuid,nodev,size={self.tmp_mb}m,mode=1777"),  # noqa: S108 - the container's
            *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--user", f"{self.user}:{self.user}"),
            *("--memory", f"{memory_mb}m", "--memory-swap", f"{memory_mb}m"),
            *("--pids-limit", str(self.processes_max)),
        )


class ContainerEmulator(LambdaEmulator):
    """A `LambdaEmulator` for an image: `with ContainerEmulator(docker, "soal", variables) as function: …`."""

    def __init__(
        self,
        docker: Docker,
        image: str,
        environment: Mapping[str, str],
        *,
        timeout_s: int = 900,
        memory_mb: int = 3008,
        confinement: Confinement | None = None,
        mounts: Sequence[str] = (),
        handler: str | None = None,
        binary: Path | None = None,
        on_line: Callable[[str], None] = lambda _line: None,
    ) -> None:
        super().__init__(environment, timeout_s=timeout_s, memory_mb=memory_mb, binary=binary, on_line=on_line)
        self._docker = docker
        self._image = image
        self._confinement = confinement or Confinement()
        self._mounts = tuple(mounts)
        self._words = docker.entry(image, handler)
        self.name = f"soal-{uuid.uuid4().hex[:12]}"

    def processes(self) -> tuple[psutil.Process, ...]:
        """Return the container's processes."""
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(self._docker.process_of(self.name))
            return (root, *root.children(recursive=True))
        return ()

    def inside(self, *command: str) -> str:
        """Run a command in the container; return its output."""
        return self._docker.read("exec", self.name, *command)

    def _command(self, addresses: tuple[str, ...]) -> list[str]:
        by_value = {name: value for name, value in self._environment.items() if _CLIENTS_OWN.fullmatch(name)}
        by_name = self._environment.keys() - by_value.keys()
        return [
            *(sys.executable, "-P", "-m", "scripts.process_owner", "--docker", self._docker.program),
            *("--containers", f"name={self.name}", self._docker.program, "run", "--rm", "--name", self.name),
            *self._confinement.arguments(self._memory_mb),
            *("--volume", f"{self._binary.resolve()}:{_RIE}:ro", "--entrypoint", _RIE),
            *(word for mount in self._mounts for word in ("--volume", mount)),
            *(word for name in sorted(by_name) for word in ("--env", name)),
            *(word for name, value in by_value.items() for word in ("--env", f"{name}={value}")),
            self._image,
            *addresses,
            *self._words,
        ]

    def _variables(self) -> dict[str, str]:
        """Return the docker client's environment. It carries the function's variables, which `ps` must not show."""
        clients = {name: value for name, value in self._docker.environment.items() if _CLIENTS_OWN.fullmatch(name)}
        variables = {name: value for name, value in self._environment.items() if not _CLIENTS_OWN.fullmatch(name)}
        return {**variables, **clients}

    def _listens(self) -> bool:
        until = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < until and self._process is not None and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return True
            time.sleep(_POLL_S)
        return False
