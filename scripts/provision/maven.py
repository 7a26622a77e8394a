"""Maven. Only its settings, and nothing in this project, name the repositories of the jars."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.provision.apt import apt_install, may_install
from scripts.provision.command import run
from scripts.provision.report import SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.provision.java import Java

__all__ = ["Maven", "find_maven"]

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_TODO: Final = "check the network and Maven's settings, then run scripts/setup again"


@dataclass(frozen=True, slots=True)
class Maven:
    """`mvn`, and the Java for it."""

    program: str
    java: Java

    def copy_closure(self, pom: Path, target: Path) -> None:
        """Copy all run-time dependencies of `pom` into the folder `target`."""
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={target}"]
        self._run(["-f", str(pom), *goal], what=f"resolving the jars of {pom}")

    def copy_artifact(self, coordinates: str, target: Path) -> None:
        """Copy one artifact, without its dependencies, into the folder `target`."""
        self._run([_COPY, f"-Dartifact={coordinates}", f"-DoutputDirectory={target}"], what=f"resolving {coordinates}")

    def _run(self, args: list[str], *, what: str) -> None:
        # Half of what Maven's short runs would compute is optimising compilation. The owner's options come last.
        options = f"-XX:TieredStopAtLevel=1 {os.environ.get('MAVEN_OPTS', '')}"
        env = {"JAVA_HOME": str(self.java.home), "MAVEN_OPTS": options.strip()}
        command = [self.program, "--quiet", "--batch-mode", "--no-transfer-progress", *args]
        run(command, what=what, todo=_TODO, env=env)


def find_maven(java: Java) -> Maven:
    """Find `mvn` on the PATH, else install it by apt. Raises `SetupError` where neither is possible."""
    if shutil.which("mvn") is None and may_install():
        apt_install("maven")
    program = shutil.which("mvn")
    if program is None:
        raise SetupError(
            "Maven (mvn) is not on the PATH, and the jars are resolved with it",
            todo="install Maven 3.6 or newer (Debian, Ubuntu: apt install maven), then run scripts/setup again",
        )
    return Maven(program, java)
