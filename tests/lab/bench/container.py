"""A container for a measured process: this machine's files and network, and no more memory than a function has.

The container's root is empty; the files that the process needs are mounted. So a benchmark runs the same files with and
without a limit; only the kernel's memory limit differs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.image.docker import DockerError
from scripts.provision.place import ROOT
from tests.support.spark_session import JARS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scripts.image.docker import Docker

__all__ = ["Container", "container"]

_SYSTEM: Final = tuple(Path(name) for name in ("/usr", "/etc", "/bin", "/lib", "/lib64"))
_OWN: Final = ("PYTHONPATH", "PYSPARK_PYTHON")  # set by Child
_PASSED: Final = ("AWS_", "SW_", "SOAL_", "BENCH_", "JAVA_HOME", "PATH", "HOME", "LANG", "LC_")
_IMPORT_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Container:
    """Builds the words that run a command in a container. Only `folder` is writable there."""

    docker: Docker
    image: str
    folder: Path

    def words(self, memory_mb: int, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the words for `memory_mb` of memory and no swap; of `environ` only what jobs read is passed on."""
        names = [*_OWN, *(name for name in sorted(environ) if name.startswith(_PASSED))]
        mounts = [*(f"{path}:{path}:ro" for path in _readable()), f"{self.folder}:{self.folder}"]
        return (
            *(self.docker.program, *(("--host", self.docker.host) if self.docker.host else ())),
            *("run", "--rm", "--interactive", "--network", "host", "--user", f"{os.getuid()}:{os.getgid()}"),
            *("--memory", f"{memory_mb}m", "--memory-swap", f"{memory_mb}m"),
            *(word for mount in mounts for word in ("--volume", mount)),
            *(word for name in names for word in ("--env", name)),
            *("--env", f"TMPDIR={self.folder}", "--workdir", str(self.folder)),
            self.image,
        )


@contextlib.contextmanager
def container(docker: Docker, folder: Path) -> Iterator[Container]:
    """Import an empty image, and remove it afterwards."""
    empty = folder / "empty.tar"
    with tarfile.open(empty, "w"):
        pass
    image = docker.read("import", str(empty), timeout_s=_IMPORT_TIMEOUT_S).strip()
    try:
        yield Container(docker, image, folder)
    finally:
        with contextlib.suppress(DockerError):  # it is empty, and another run may hold the same one
            docker.read("rmi", image)


def _readable() -> list[Path]:
    """Return the folders of system, working tree, Python and jars, links resolved too: mounts do not follow links."""
    java = os.environ.get("JAVA_HOME")
    given = [ROOT, Path(sys.prefix), Path(sys.base_prefix), JARS.parent, *([Path(java)] if java else [])]
    wanted = {*given, *(path.resolve() for path in given)}
    wanted = {path for path in wanted if not path.is_relative_to("/usr")}
    return [*(path for path in _SYSTEM if path.exists()), *sorted(wanted)]
