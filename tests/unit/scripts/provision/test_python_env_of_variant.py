"""Set-up gives each of the image's variants a home with its locked packages and links to its jars."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from scripts.provision import python_env
from scripts.provision.place import Place
from scripts.provision.python_env import ensure_packages, link_jars
from soal.console.problem import Failure

PROJECT = '[project]\nname = "soal"\n[build-system]\nrequires = []\n[tool.hatch]\n'
LOCKS = ("dev", "build", "uv", "runtime", "full")


class Commands:
    """Records the commands of set-up; commands with words in `refused` fail."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []
        self.refused: tuple[str, ...] = ()

    def __call__(self, args: list[object], *, act: str, todo: str) -> str:
        words = [str(arg) for arg in args]
        self.ran.append(words)
        if any(word in self.refused or Path(word).name in self.refused for word in words):
            raise Failure(act, todo=todo)
        if "venv" in words:
            shutil.rmtree(words[-1], ignore_errors=True)
            site = Path(words[-1]) / "lib" / "python3.11" / "site-packages"
            for name in ("pyspark/jars", "rich"):
                (site / name).mkdir(parents=True)
            (site / "pyspark" / "jars" / "rocksdbjni-9.8.4.jar").touch()
            (site / "pyspark" / "jars" / "spark-hive_2.13-4.1.4.jar").touch()
            (Path(words[-1]) / "bin").mkdir()
            (Path(words[-1]) / "bin" / "python").symlink_to(sys.executable)
        return ""

    def installs(self) -> list[list[str]]:
        return [words for words in self.ran if "install" in words]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.requirements.mkdir()
    for name in LOCKS:
        (place.requirements / f"{name}.txt").write_text(name)
    (tmp_path / "scripts" / "image").mkdir(parents=True)
    (tmp_path / "scripts" / "image" / "trim.py").touch()
    (tmp_path / "safewriter").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return place


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    commands = Commands()
    monkeypatch.setattr(python_env, "run", commands)
    return commands


def test_the_packages_are_those_of_the_image(place: Place, commands: Commands) -> None:
    """The packages come from the image's locks with hashes, and are trimmed; SafeWriter is linked to the tree."""
    assert ensure_packages(place, "slim").changed
    site = place.home / "python" / "lib" / "python3.11" / "site-packages"
    (locked,) = commands.installs()
    assert "--require-hashes" in locked
    assert [word for word in locked if word.endswith(".txt")] == [
        str(place.requirements / "build.txt"),
        str(place.requirements / "runtime.txt"),
    ]
    assert sorted(path.name for path in site.iterdir()) == ["pyspark", "safewriter"]
    assert not list((site / "pyspark" / "jars").iterdir())
    assert (site / "safewriter").resolve() == place.root / "safewriter"


def test_the_variant_full_has_more(place: Place, commands: Commands) -> None:
    """The variant full has one more lock, and jars that slim lacks."""
    ensure_packages(place, "full")
    (locked,) = commands.installs()
    assert str(place.requirements / "full.txt") in locked
    jars = place.home / "full" / "python" / "lib" / "python3.11" / "site-packages" / "pyspark" / "jars"
    assert [jar.name for jar in jars.iterdir()] == ["rocksdbjni-9.8.4.jar"]


def test_they_are_installed_once(place: Place, commands: Commands) -> None:
    """Packages are installed once, and again if a lock, the trimming or the tree's root has changed."""
    ensure_packages(place, "slim")
    commands.ran.clear()
    assert not ensure_packages(place, "slim").changed
    assert not commands.ran
    (place.root / "scripts" / "image" / "trim.py").write_text("changed")
    assert ensure_packages(place, "slim").changed


def test_the_registry_is_asked_only_for_what_is_not_at_hand(place: Place, commands: Commands) -> None:
    """Each install tries uv's cache first, without the network."""
    ensure_packages(place, "slim")
    assert all("--offline" in words for words in commands.installs())
    commands.ran.clear()
    commands.refused = ("--offline",)
    ensure_packages(place, "full")
    assert ["--offline" in words for words in commands.installs()] == [True, False]


def test_a_python_that_does_not_start_is_replaced(place: Place, commands: Commands) -> None:
    """A Python that does not start, as after a system update, is replaced."""
    ensure_packages(place, "slim")
    python = place.home / "python" / "bin" / "python"
    python.unlink()
    python.symlink_to("/no/such/python")
    assert ensure_packages(place, "slim").changed


@pytest.mark.parametrize("step", ["runtime.txt", "compileall"])
def test_an_interrupted_run_is_repaired(place: Place, commands: Commands, step: str) -> None:
    """After an interrupted run the next one starts from scratch."""
    commands.refused = (step,)
    with pytest.raises(Failure):
        ensure_packages(place, "slim")
    commands.refused = ()
    commands.ran.clear()
    assert ensure_packages(place, "slim").changed
    assert "venv" in commands.ran[0]


def test_the_jars_are_those_of_the_image_and_the_variant(place: Place) -> None:
    """Jars are links, so that both homes get a new log store; a jar removed from the lists is unlinked."""
    for name in ("jars/delta.jar", "jars/soal-logstore.jar", "full-jars/avro.jar", "full/jars/old.jar", "java/release"):
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.home / name).touch()
    assert link_jars(place).changed
    assert not link_jars(place).changed
    full = place.home / "full"
    assert sorted(jar.name for jar in (full / "jars").iterdir()) == ["avro.jar", "delta.jar", "soal-logstore.jar"]
    assert (full / "jars" / "delta.jar").samefile(place.home / "jars" / "delta.jar")
    assert (full / "java" / "release").is_file()


def test_a_job_that_runs_keeps_its_jars(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A running job always finds the folder and the jars of both lists: new links precede removals."""
    for name in ("jars/delta-1.jar", "jars/hadoop.jar", "java/release"):
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.home / name).touch()
    link_jars(place)
    folder = place.home / "full" / "jars"
    before = (folder.stat().st_ino, (folder / "hadoop.jar").lstat().st_ino, (folder.parent / "java").lstat().st_ino)
    (place.home / "jars" / "delta-1.jar").rename(place.home / "jars" / "delta-2.jar")
    seen: list[list[str]] = []
    unlink = Path.unlink

    def watched(path: Path, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - its signature
        seen.append(sorted(jar.name for jar in folder.iterdir()))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", watched)
    assert link_jars(place).changed
    assert seen == [["delta-1.jar", "delta-2.jar", "hadoop.jar"]]
    assert sorted(jar.name for jar in folder.iterdir()) == ["delta-2.jar", "hadoop.jar"]
    assert (
        folder.stat().st_ino,
        (folder / "hadoop.jar").lstat().st_ino,
        (folder.parent / "java").lstat().st_ino,
    ) == before


def test_java_that_set_up_no_longer_brings_is_no_longer_linked(place: Place) -> None:
    """When set-up no longer provides Java, its link is removed."""
    (place.home / "java").mkdir(parents=True)
    link_jars(place)
    (place.home / "java").rmdir()
    assert link_jars(place).changed
    assert not (place.home / "full" / "java").is_symlink()
