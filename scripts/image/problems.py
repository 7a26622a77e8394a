"""Docker for a command: its errors become the user's `Problem`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from scripts.image.daemon import DaemonError
from scripts.image.docker import DockerError, docker
from scripts.provision.report import SetupError
from soal.console.problem import EXIT_FAILED, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.image.docker import Docker
    from soal.home import Home

__all__ = ["require", "with_docker"]


@contextlib.contextmanager
def with_docker(home: Home) -> Iterator[Docker]:
    """Yield a daemon, found or started; its errors become the user's `Problem`."""
    try:
        with docker(home.path) as found:
            yield found
    except DaemonError as error:
        raise Problem(str(error), todo=error.todo, exit_code=EXIT_FAILED) from error
    except SetupError as error:
        raise Problem(error.args[0], todo=error.todo, exit_code=EXIT_FAILED) from error
    except DockerError as error:
        raise Problem(str(error), todo="see what docker says above", exit_code=EXIT_FAILED) from error


def require(docker: Docker, image: str) -> None:
    """Raise `Problem` if the daemon does not have an image."""
    if not docker.has(image):
        raise Problem(f"docker has no image {image}", todo="build it with: soal image build", exit_code=EXIT_FAILED)
