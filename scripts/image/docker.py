"""Docker for the commands: a client that can build, and a daemon, found or started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.image.daemon import is_own, own_daemon
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from soal.home import Home

_LOOK_TIMEOUT_S: Final = 30
_TAIL: Final = 4000
_BUILDKIT_INSIDE: Final = range(19, 23)
"""Major versions of the client with BuildKit built in; newer ones need the plug-in buildx."""


class DockerError(Failure):
    """A docker command failed. The message contains its last lines."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, todo="see what docker says above")


@dataclass(frozen=True, slots=True)
class Docker:
    """The client `program` for the daemon at `host` (None: the default).

    `is_own`: the daemon is ours, and containers have only the host's network.
    """

    program: str
    host: str | None
    is_own: bool

    @property
    def environment(self) -> dict[str, str]:
        """Return the client's environment."""
        host = {} if self.host is None else {"DOCKER_HOST": self.host}
        return {**os.environ, "DOCKER_BUILDKIT": "1", **host}

    def read(self, *arguments: str, timeout_s: float = _LOOK_TIMEOUT_S) -> str:
        """Run a command; return its output. Raises `DockerError` if it fails."""
        process = self._run(arguments, timeout_s, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if process.returncode != 0:
            raise DockerError(f"docker {arguments[0]}: {(process.stderr or process.stdout).strip()[-_TAIL:]}")
        return process.stdout

    def show(self, *arguments: str, timeout_s: float) -> None:
        """Run a command with its output on stderr. Raises `DockerError` if it fails."""
        process = self._run(arguments, timeout_s, stdout=2)
        if process.returncode != 0:
            raise DockerError(f"docker {arguments[0]} failed (exit code {process.returncode}); see above")

    def _run(
        self, arguments: tuple[str, ...], timeout_s: float, *, stdout: int, stderr: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self.program, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DockerError(f"docker {arguments[0]}: not done after {timeout_s:g} s") from error

    def has(self, image: str) -> bool:
        """Return whether the daemon has an image."""
        with contextlib.suppress(DockerError):
            self.read("image", "inspect", "--format", "{{.Id}}", image)
            return True
        return False

    def entry(self, image: str, handler: str | None = None) -> tuple[str, ...]:
        """Return an image's entry point and command; `handler` replaces the command."""
        entrypoint, command = json.loads(
            self.read("image", "inspect", "--format", "[{{json .Config.Entrypoint}},{{json .Config.Cmd}}]", image)
        )
        return (*(entrypoint or ()), *((handler,) if handler is not None else command or ()))

    def process_of(self, container: str) -> int:
        """Return the host's process id of a container's first process; 0 if it does not run."""
        with contextlib.suppress(DockerError):
            return int(self.read("inspect", "--format", "{{.State.Pid}}", container))
        return 0


@contextlib.contextmanager
def with_docker(home: Home) -> Iterator[Docker]:
    """Yield a client of the running daemon, or of our own, which runs during the block (images stay in `home`).

    Raises `Failure` if there is none.
    """
    if (client := _client(os.environ)) is not None:
        yield client
        return
    with own_daemon(home.path) as host:
        yield Docker(_builder(os.environ), host, is_own=True)


def _client(environ: Mapping[str, str]) -> Docker | None:
    for program in _programs(environ)[:1]:
        client = Docker(program, environ.get("DOCKER_HOST"), is_own=False)
        with contextlib.suppress(DockerError):
            client.read("version", "--format", "{{.Server.Version}}")
            return Docker(_builder(environ), client.host, is_own=is_own(client.host))
    return None


def _programs(environ: Mapping[str, str]) -> list[str]:
    """Return every client on the PATH: an older client may be able to build although a newer, earlier one cannot."""
    folders = [Path(folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    programs = [shutil.which("docker", path=str(folder)) for folder in folders]
    return list(dict.fromkeys(program for program in programs if program is not None))


def _builder(environ: Mapping[str, str]) -> str:
    """Return the first client that can build with BuildKit."""
    programs = _programs(environ)
    for program in programs:
        version = _output(program, "--version")
        major = re.search(r"version (\d+)\.", version)
        if (major and int(major[1]) in _BUILDKIT_INSIDE) or _output(program, "buildx", "version"):
            return program
    raise Failure(
        f"no docker client that can build with BuildKit: {', '.join(programs) or 'none is on the path'}",
        todo="install the plug-in buildx (docker-buildx-plugin), or Debian's docker.io",
    )


def _output(program: str, *arguments: str) -> str:
    reply = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_LOOK_TIMEOUT_S, check=False)
    return reply.stdout if reply.returncode == 0 else ""


def require(docker: Docker, image: str) -> None:
    """Raise `Failure` if the daemon does not have an image."""
    if not docker.has(image):
        raise Failure(f"docker has no image {image}", todo="build it with: soal image build")
