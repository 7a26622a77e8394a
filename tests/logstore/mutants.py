"""Change the log store in one place at a time (`mutants.toml`) and check that a test fails: minutes.

`scripts/mutants --java Gate Blocks` runs the mutants of two classes. It needs a JDK (`CompileAll.java`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hypothesis import HealthCheck, Phase, given, settings

from scripts.provision.java import ensure_java
from scripts.provision.logstore import class_path
from scripts.provision.place import ROOT, Place
from tests.logstore.jvm import SOURCES, LogStore, compiled
from tests.model.gate_comparison import difference
from tests.model.gate_histories import HISTORIES, histories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.model.gate_world import World

__all__ = ["Mutant", "campaign", "mutants"]

_LIST: Final = Path(__file__).with_name("mutants.toml")
_COMPILER: Final = Path(__file__).with_name("CompileAll.java")
_PACKAGE: Final = SOURCES / "io" / "soal" / "logstore"
_GATE: Final = ("Gate", "Settlers", "Block", "Blocks", "Statement", "CommitBody", "ConditionalS3LogStore")
_LIMIT_S: Final = 300


@dataclass(frozen=True)
class Mutant:
    """One change of a class: `old`, which occurs once, becomes `new`. `reason`: why no test can or need notice it."""

    of: str
    old: str
    new: str
    reason: str
    folder: Path

    @property
    def stands(self) -> int:
        """How often `old` occurs in the class: must be once."""
        return self._source.read_text(encoding="utf-8").count(self.old)

    def write(self) -> None:
        """Write the changed class into `folder`."""
        if self.stands != 1:
            raise SystemExit(f"mutants: {self.of} holds {self.stands} times, not once: {self.old}")
        text = self._source.read_text(encoding="utf-8")
        self.folder.mkdir()
        (self.folder / self._source.name).write_text(text.replace(self.old, self.new), encoding="utf-8")

    @property
    def _source(self) -> Path:
        return _PACKAGE / f"{self.of}.java"

    def __str__(self) -> str:
        return f"{self.of}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split()) or 'nothing'}"


def campaign(classes: Sequence[str], *, jobs: int) -> int:
    """Return 0 if tests notice every mutant without a reason, and none with one. No `classes`: all."""
    with tempfile.TemporaryDirectory(prefix="logstore-mutants-") as folder:
        found = list(mutants(Path(folder), classes))
        if not found:
            raise SystemExit(f"mutants: no class of {_LIST.name} among: {', '.join(classes)}")
        for mutant in found:
            mutant.write()
        as_it_is = compiled(Path(folder))
        _compile(found, as_it_is)
        worlds = _worlds()
        with ThreadPoolExecutor(jobs) as pool:
            by = list(pool.map(lambda mutant: _said(mutant, _noticed(mutant, as_it_is, worlds)), found))
    survived = sum(not noticed and not mutant.reason for mutant, noticed in zip(found, by, strict=True))
    stale = sum(bool(noticed and mutant.reason) for mutant, noticed in zip(found, by, strict=True))
    print(f"{len(by)} mutants: {sum(map(bool, by))} noticed, {survived} survived, {stale} excused without need")
    return 1 if survived or stale else 0


def mutants(folder: Path, classes: Sequence[str] = ()) -> Iterator[Mutant]:
    """Yield the mutants of the classes, or of all if there are none."""
    for of, changes in tomllib.loads(_LIST.read_text(encoding="utf-8")).items():
        if not classes or of in classes:
            for number, one in enumerate(changes):
                yield Mutant(of, one["old"], one["new"], one.get("reason", ""), folder / f"{of}-{number}")


def _compile(changed: Sequence[Mutant], as_it_is: Path) -> None:
    java, _ = ensure_java(Place(ROOT), os.environ)
    if java.javac is None:
        raise SystemExit(
            f"mutants: {java.home} is no JDK; to do: install one of Java 17 (Debian: openjdk-17-jdk-headless)"
        )
    folders = [str(mutant.folder) for mutant in changed]
    subprocess.run([java.java, _COMPILER, f"{as_it_is}:{class_path(Place(ROOT))}", *folders], check=True)


def _worlds() -> list[World]:
    found: list[World] = []
    as_tested = settings(
        max_examples=HISTORIES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @as_tested
    @given(histories())
    def take(world: World) -> None:
        found.append(world)

    take()
    return found


def _noticed(mutant: Mutant, as_it_is: Path, worlds: Sequence[World]) -> str:
    """Return which check noticed the mutant; empty if none did."""
    classes = mutant.folder / "classes"
    if not any(classes.rglob("*.class")):
        return "the compiler"
    if mutant.of in _GATE:
        with LogStore(mutant.folder / "stderr", classes, as_it_is) as store:
            timer = threading.Timer(_LIMIT_S, store.kill)
            timer.start()
            try:
                for number, world in enumerate(worlds):
                    if difference(store, world):
                        return f"history {number}"
            except AssertionError:
                return "a history that did not end"
            finally:
                timer.cancel()
    return _tests(f"{classes}:{as_it_is}")


def _tests(classes: str) -> str:
    command = [sys.executable, "-P", "-m", "pytest", "tests/logstore", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LOGSTORE_CLASSES": classes}
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "tests that did not end"
    if run.returncode == 0:
        return ""
    return next((line for line in run.stdout.splitlines() if line.startswith("FAILED")), run.stdout[-500:])


def _said(mutant: Mutant, noticed: str) -> str:
    word = "noticed" if noticed else "excused" if mutant.reason else "SURVIVED"
    print(f"{word:<9}{mutant}  [{noticed or mutant.reason}]", flush=True)
    return noticed
