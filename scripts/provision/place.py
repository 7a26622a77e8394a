"""The paths of a working tree, and the stamps that record for which inputs a step is done."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
"""This clone of the repository."""


@dataclass(frozen=True, slots=True)
class Place:
    """The paths of a clone and of set-up's files in it."""

    root: Path

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def home(self) -> Path:
        """`.soal`: everything that is not Python."""
        return self.root / ".soal"

    @property
    def jars(self) -> Path:
        return self.home / "jars"

    @property
    def requirements(self) -> Path:
        return self.root / "requirements"

    def stamp(self, name: str) -> Stamp:
        return Stamp(self.home / "stamps" / name)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary directory on the result's file system, so that a finished file can be moved atomically."""
        self.home.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.home))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def sweep(self) -> None:
        """Delete the files that an interrupted run has left."""
        for scratch in self.home.glob("scratch-*"):
            shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file with the fingerprint of the inputs for which a step was last completed."""

    path: Path

    def matches(self, inputs: str) -> bool:
        try:
            return self.path.read_text(encoding="utf-8").strip() == inputs
        except FileNotFoundError:
            return False

    def clear(self) -> None:
        """Delete the stamp. Call this before the step begins, so that an interrupted step does not look done."""
        self.path.unlink(missing_ok=True)

    def write(self, inputs: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(inputs + "\n", encoding="utf-8")
        fresh.replace(self.path)


def fingerprint(parts: Iterable[str | Path]) -> str:
    """Hash texts and the contents of files (with their names), in the order given."""
    digest = hashlib.sha256()
    for part in parts:
        name, body = (part.name, part.read_bytes()) if isinstance(part, Path) else ("", part.encode())
        digest.update(f"{len(name)} {len(body)}\n{name}".encode() + body)
    return digest.hexdigest()
