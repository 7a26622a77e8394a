"""The list of mutants, `mutants.toml`: each changes one file, at a text that occurs there once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Mutant", "MutantError", "listed"]

_LIST: Final = Path(__file__).with_name("mutants.toml")


class MutantError(ValueError):
    """A mutant does not fit the code; the message names it."""


class Mutant(BaseModel):
    """Code without one of its guards. `tests`: pytest's targets, in this order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)+$")
    guard: str = Field(min_length=1)
    file: str
    old: str = Field(min_length=1)
    new: str
    tests: tuple[str, ...] = Field(min_length=1)

    @property
    def is_java(self) -> bool:
        """Whether the changed file is Java, which must be compiled."""
        return self.file.endswith(".java")

    def changed(self, root: Path) -> str:
        """Return the changed content of the file in a tree. Raises `MutantError`."""
        path = root / self.file
        if not path.is_file():
            raise MutantError(f"mutant {self.name}: there is no file {self.file}")
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise MutantError(f"mutant {self.name}: {self.file} holds {count} times, not once: {self.old}")
        return text.replace(self.old, self.new)

    def write(self, root: Path) -> None:
        """Change the file in a tree. Raises `MutantError`."""
        (root / self.file).write_text(self.changed(root), encoding="utf-8")


class _List(BaseModel):
    model_config = ConfigDict(extra="forbid")

    mutant: tuple[Mutant, ...]


def listed(path: Path = _LIST) -> tuple[Mutant, ...]:
    """Return the mutants of a list. Raises `MutantError` if two share a name, `ValueError` for another file."""
    found = _List.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).mutant
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MutantError(f"mutants with one name: {', '.join(twice)}")
    return found
