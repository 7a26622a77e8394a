"""Runs the log store, compiled from the sources of this tree, in a JVM of its own without Spark."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final, Self

from handler.spark.classpath import archived_jars
from handler.spark.installation import find_pyspark
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.logstore import compile_java, pack
from scripts.provision.place import ROOT, Place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["SOURCES", "LogStore", "compile_into", "compiled", "jars", "java"]

SOURCES: Final = ROOT / "image" / "logstore" / "src" / "main" / "java"
_DRIVER: Final = ROOT / "tests" / "logstore" / "java" / "io" / "soal" / "logstore"
_WAIT_S: Final = 20
_TIMEOUT_S: Final = 250


def jars() -> tuple[Path, ...]:
    """Return the jars of the working tree's class-data archive: PySpark's, and those that SoAL adds."""
    spark_home = find_pyspark()
    assert spark_home is not None
    return archived_jars(spark_home, Place(ROOT).home)


def java(*words: object) -> list[str]:
    """Run Java, and return the lines that it prints. It must end well."""
    found, _ = ensure_java(Place(ROOT), os.environ)
    command = [found.java, "-XX:TieredStopAtLevel=1", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def compile_into(folder: Path, files: Iterable[Path]) -> None:
    """Compile sources as scripts/setup compiles the log store."""
    found, _ = ensure_java(Place(ROOT), os.environ)
    maven = functools.cache(lambda: find_maven(found))
    compile_java(Place(ROOT), found, maven, sorted(files), folder)


def compiled(folder: Path) -> Path:
    """Compile the log store and the tests' driver as scripts/setup compiles the log store; return the jar."""
    packages = [SOURCES / "io" / "soal" / "logstore", _DRIVER]
    classes = folder / "classes"
    compile_into(classes, (path for package in packages for path in package.rglob("*.java")))
    jar = folder / "logstore-under-test.jar"
    pack({str(path.relative_to(classes)): path for path in classes.rglob("*.class")}, jar)
    return jar


class LogStore:
    """A context manager: `with LogStore(said, jar) as store: store.ask("parse", body=...)`; stderr goes to `said`."""

    def __init__(self, said: Path, *classes: Path) -> None:
        found, _ = ensure_java(Place(ROOT), os.environ)
        class_path = ":".join(str(path) for path in (*jars(), *classes))
        self._said = said
        with said.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    found.java,
                    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path, "io.soal.logstore.Driver"),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=_WAIT_S)  # closes its stdin, so it exits
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def kill(self) -> None:
        """Kill the JVM: a pending `ask` raises `AssertionError`."""
        self._process.kill()

    def ask(self, what: str, **request: object) -> Any:
        """Return the driver's answer; `error` is a list of lines: an exception, its causes, its suppressed errors."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **request}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._said.read_text(encoding="utf-8")
        return json.loads(answer)
