from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision import python_env
from scripts.provision.place import Place
from scripts.provision.python_env import ensure_python, inputs_of
from scripts.provision.report import SetupError

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = '[project]\nname = "soal"\n[build-system]\nrequires = []\n[tool.hatch]\n[tool.ruff]\nline-length = 120\n'


class Commands:
    """What set-up would run, as words; the one that is named in `fails` is killed half-way."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.ran: list[str] = []
        self.fails: str | None = None
        self.copy = place.venv / "lib" / "python3.11" / "site-packages" / "pyspark" / "python" / "lib" / "pyspark.zip"

    def __call__(self, args: list[object], *, what: str, todo: str) -> str:
        words = [str(arg) for arg in args]
        known = ("venv", "uv.txt", "sync", "--editable", "compileall")
        step = next(step for step in known if any(word == step or word.endswith(f"/{step}") for word in words))
        if step == self.fails:
            raise SetupError(what, todo=todo)
        self.ran.append(step)
        if step == "sync":
            self.copy.parent.mkdir(parents=True, exist_ok=True)
            self.copy.touch()
        if step == "venv":
            self.place.python.parent.mkdir(parents=True, exist_ok=True)
            self.place.python.write_text("#!/bin/sh\nexit 0\n")
            self.place.python.chmod(0o755)
        return ""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.requirements.mkdir()
    for name in ("dev", "build", "uv"):
        (place.requirements / f"{name}.txt").write_text(name)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return place


@pytest.fixture
def commands(place: Place, monkeypatch: pytest.MonkeyPatch) -> Commands:
    commands = Commands(place)
    monkeypatch.setattr(python_env, "run", commands)
    return commands


def test_an_environment_is_made_once(place: Place, commands: Commands) -> None:
    """The first run creates and fills it, the second runs nothing."""
    assert ensure_python(place).changed
    assert commands.ran == ["venv", "uv.txt", "sync", "--editable", "compileall"]
    assert not ensure_python(place).changed
    assert len(commands.ran) == 5


def test_python_workers_find_pyspark_compiled(place: Place, commands: Commands) -> None:
    """Not its sources in a zip file, which Spark would let them import first."""
    ensure_python(place)
    assert commands.copy.parent.is_dir()
    assert not commands.copy.exists()


def test_a_changed_lock_is_brought_in(place: Place, commands: Commands) -> None:
    """A complete environment is kept and brought up to the new lock."""
    ensure_python(place)
    (place.requirements / "dev.txt").write_text("newer")

    assert ensure_python(place).changed
    assert commands.ran[5:] == ["uv.txt", "sync", "--editable", "compileall"]


@pytest.mark.parametrize("step", ["uv.txt", "sync", "--editable", "compileall"])
def test_an_interrupted_run_is_repaired(place: Place, commands: Commands, step: str) -> None:
    """After a run that ended half-way, the next one does not trust what is there and begins anew."""
    commands.fails = step
    with pytest.raises(SetupError):
        ensure_python(place)
    commands.fails = None
    commands.ran.clear()

    assert ensure_python(place).changed
    assert commands.ran == ["venv", "uv.txt", "sync", "--editable", "compileall"]


def test_a_python_that_does_not_start_is_replaced(place: Place, commands: Commands) -> None:
    """An environment whose interpreter is gone, say after a system upgrade, is made anew."""
    ensure_python(place)
    place.python.unlink()
    commands.ran.clear()

    ensure_python(place)

    assert commands.ran[0] == "venv"


def test_settings_of_tools_do_not_count(place: Place) -> None:
    """A change of a linter's setting installs nothing; a change of the project's own data, or of its place, does."""
    before = inputs_of(place)
    project = place.root / "pyproject.toml"
    project.write_text(PROJECT.replace("120", "100"))
    assert inputs_of(place) == before
    project.write_text(PROJECT.replace("soal", "other"))
    assert inputs_of(place) != before
