"""Import modules that only a clone of the repository has: local S3 and function, image build, checks of the set-up."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from soal.console.problem import Problem
from soal.source_paths import FUNCTION

if TYPE_CHECKING:
    from types import ModuleType


def from_clone(module: str, command: str) -> ModuleType:
    """Import a module of `scripts` for `command`. Raises `Problem` if only the package is installed."""
    if not FUNCTION.joinpath(*module.split(".")).with_suffix(".py").is_file():
        raise Problem(
            f"{command} needs a clone of SoAL's repository, and this is an installed package",
            todo="clone it, run scripts/setup there, and call .venv/bin/soal",
        )
    return import_module(module)
