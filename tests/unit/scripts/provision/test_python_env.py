"""Set-up makes the Python environment `.venv` from locked hashes once, and repairs or updates it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from scripts.provision import python_env
from scripts.provision.place import Place
from scripts.provision.python_env import ensure_spark, inputs_of
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.provision.steps import Found

PROJECT = '[project]\nname = "soal"\n[build-system]\nrequires = []\n[tool.hatch]\n[tool.ruff]\nline-length = 120\n'


ALL = ["venv", "uv.txt", "local.txt", "sync", "--editable", "compileall"]


def ensure_python(place: Place) -> Found:
    """Run both parts, as set-up does."""
    return ensure_spark(place).complete()


class Commands:
    """Records the commands of set-up; the one named in `fails` is killed half-way."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.ran: list[str] = []
        self.words: dict[str, list[str]] = {}
        self.fails: str | None = None
        self.copy = place.venv / "lib" / "python3.11" / "site-packages" / "pyspark" / "python" / "lib" / "pyspark.zip"

    def __call__(self, args: list[object], *, act: str, todo: str) -> str:
        words = [str(arg) for arg in args]
        step = next(step for step in ALL if any(word == step or word.endswith(f"/{step}") for word in words))
        if step == self.fails:
            raise Failure(act, todo=todo)
        self.ran.append(step)
        self.words[step] = words
        if step == "local.txt":
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
    assert commands.ran == ALL
    assert not ensure_python(place).changed
    assert commands.ran == ALL


def test_what_spark_needs_comes_first(place: Place, commands: Commands) -> None:
    """Other steps can use Spark while the rest is installed; until then the environment does not count as complete."""
    packages = ensure_spark(place)
    assert commands.ran == ALL[:3]
    assert str(place.requirements / "runtime.txt") in commands.words["local.txt"]
    commands.ran.clear()
    assert not ensure_spark(place).is_complete
    assert commands.ran == ALL[:3]
    commands.ran.clear()

    assert packages.complete().changed
    assert commands.ran == ALL[3:]
    assert ensure_spark(place).is_complete


def test_every_package_is_held_against_its_hash(place: Place, commands: Commands) -> None:
    """Every package is checked by hash, build dependencies too, except this project."""
    ensure_python(place)
    for step in ("uv.txt", "local.txt", "sync"):
        assert "--require-hashes" in commands.words[step]
    for step in ("local.txt", "sync", "--editable"):
        assert str(place.requirements / "build.txt") in commands.words[step]


def test_pyspark_is_built_once(place: Place, commands: Commands) -> None:
    """Both commands that may build PySpark use the same settings, so that it is built once, without compression."""
    ensure_python(place)
    settings = [
        [word for word in commands.words[step] if word.startswith("pyspark:")] for step in ("local.txt", "sync")
    ]
    assert settings == [["pyspark:--build-option=--compression=stored"]] * 2


def test_the_packages_own_tests_are_not_compiled(place: Place, commands: Commands) -> None:
    """Only the packages' tests are not compiled."""
    ensure_python(place)
    words = commands.words["compileall"]
    left_out = words[words.index("-x") + 1]
    assert re.search(left_out, "/site-packages/pandas/tests/test_api.py")
    assert not re.search(left_out, "/site-packages/pyspark/testing/utils.py")


def test_python_workers_find_pyspark_compiled(place: Place, commands: Commands) -> None:
    """Python workers import the compiled PySpark, not the sources in its zip file, which Spark would prefer."""
    ensure_python(place)
    assert commands.copy.parent.is_dir()
    assert not commands.copy.exists()


def test_a_changed_lock_is_brought_in(place: Place, commands: Commands) -> None:
    """A complete environment is kept and updated to a changed lock."""
    ensure_python(place)
    (place.requirements / "dev.txt").write_text("newer")

    assert ensure_python(place).changed
    assert commands.ran == [*ALL, *ALL[1:]]


@pytest.mark.parametrize("step", ALL[1:])
def test_an_interrupted_run_is_repaired(place: Place, commands: Commands, step: str) -> None:
    """After an interrupted run the next one starts from scratch."""
    commands.fails = step
    with pytest.raises(Failure):
        ensure_python(place)
    commands.fails = None
    commands.ran.clear()

    assert ensure_python(place).changed
    assert commands.ran == ALL


def test_a_python_that_does_not_start_is_replaced(place: Place, commands: Commands) -> None:
    """An environment whose interpreter is gone, as after a system upgrade, is recreated."""
    ensure_python(place)
    place.python.unlink()
    commands.ran.clear()

    ensure_python(place)

    assert commands.ran[0] == "venv"


def test_settings_of_tools_do_not_count(place: Place) -> None:
    """A change of a linter's settings installs nothing; a change of the project's metadata or root does."""
    before = inputs_of(place)
    project = place.root / "pyproject.toml"
    project.write_text(PROJECT.replace("120", "100"))
    assert inputs_of(place) == before
    project.write_text(PROJECT.replace("soal", "other"))
    assert inputs_of(place) != before
