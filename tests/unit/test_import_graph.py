"""The graph of imports: no cycle, and no emulator behind a command for AWS."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import pytest

from safewriter.tables.registry import FORMATS
from tests.unit.test_architecture import OURS, ROOT, write

if TYPE_CHECKING:
    from pathlib import Path


def file_of(module: str, root: Path) -> Path:
    path = root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules_imported_by(module: str, root: Path = ROOT) -> set[str]:
    """Return our modules that a module imports anywhere in its code, typing-only ones included."""
    found = set()
    for node in ast.walk(ast.parse(file_of(module, root).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if file_of(name, root).exists() else str(node.module) for name in inner}
    return {name for name in found if name.split(".")[0] in OURS and file_of(name, root).exists()}


def modules_of(package: str, root: Path = ROOT) -> list[str]:
    paths = (path.relative_to(root) for path in sorted(root.joinpath(*package.split(".")).rglob("*.py")))
    return [".".join(path.with_suffix("").parts) for path in paths if path.name != "__init__.py"]


def reached_from(module: str) -> set[str]:
    """Return our modules that a module imports, directly or indirectly."""
    found, rest = set(), {module}
    while rest:
        found |= rest
        rest = {name for one in rest for name in modules_imported_by(one)} - found
    return found


def circle(*packages: str, root: Path = ROOT) -> list[str]:
    """Return a cycle of imports among the modules of packages, or an empty list."""
    modules = [one for package in packages for one in modules_of(package, root)]
    try:
        TopologicalSorter({one: modules_imported_by(one, root) - {one} for one in modules}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.slow
def test_there_is_no_circle_of_imports() -> None:
    """There is no cycle of imports, also none for type checkers: a module can be read without later ones."""
    assert circle(*sorted(OURS)) == []


def test_the_guard_does_not_know_the_library_that_builds_on_it() -> None:
    """A build opens a block with its own `Session`; only the registry names the module that settlers need. Imports in
    functions count. Code that settles a build needs no code that writes it.
    """
    library = "safewriter.snapshots."
    guard = [one for one in modules_of("safewriter") if not one.startswith(library)]
    assert {one: found for one in guard if (found := names_below(library, modules_imported_by(one)))} == {}
    named = {text for text in FORMATS.values() if text.startswith(library)}
    assert named == {"safewriter.snapshots.settle.format"}
    assert names_below(f"{library}write.", *map(reached_from, named)) == set()


def names_below(prefix: str, *modules: set[str]) -> set[str]:
    return {one for found in modules for one in found if one.startswith(prefix)}


@pytest.mark.parametrize("inner", ["from scripts import a", "import scripts.a", "if TYPE_CHECKING:\n import scripts.a"])
def test_a_circle_of_imports_is_found(tmp_path: Path, inner: str) -> None:
    """A cycle is found in every form of an import, through any number of modules."""
    write(tmp_path, "scripts/a.py", "from scripts.b import c")
    write(tmp_path, "scripts/b/c.py", "def f():\n    from scripts.d import f")
    write(tmp_path, "scripts/d.py", inner)

    assert set(circle("scripts", root=tmp_path)) == {"scripts.a", "scripts.b.c", "scripts.d"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        *(f"soal.commands.{name}" for name in ("doctor", "graduate", "invoke", "logs", "orphans")),
        *(f"soal.commands.{name}" for name in ("recover", "redrive", "runs", "snapshot")),
        *modules_of("soal.remote"),
    ],
)
def test_commands_that_go_to_aws_need_no_emulator(module: str) -> None:
    """Commands for AWS import no emulator, directly or indirectly: only `soal local`, `bench` and `image` start one."""
    reached = reached_from(module)

    assert [name for name in reached if name.startswith(("scripts.emulator", "soal.testing"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("module", modules_of("soal.commands"))
def test_no_command_imports_another_one(module: str) -> None:
    """Commands share options.py, target.py and their subjects' rooms, and import no other command."""
    others = {one for one in modules_of("soal.commands") if one != module}

    assert others & reached_from(module) == set()


def test_the_command_line_starts_without_emulators_and_engines() -> None:
    """The command line starts without emulators and engines, which take a second or more to import."""
    program = "import soal.app, sys; print(*sorted({'moto', 'pyiceberg', 'pyspark'} & sys.modules.keys()))"

    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert loaded.stdout.split() == []
