"""Set-up finds a Java 17 by JAVA_HOME, PATH or system, and links it if the PATH has another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision import java
from scripts.provision.java import ensure_java, find_maven, java_at
from scripts.provision.place import Place
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path


def install(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'IMPLEMENTOR="us"\nJAVA_VERSION="{version}"\n')
    (home / "bin" / "java").touch(mode=0o755)
    return home


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(java, "_SYSTEM_HOMES", tmp_path / "jvm")
    return Place(tmp_path / "clone")


@pytest.mark.parametrize("version", ["17", "17.0.15", "17.0.9.2"])
def test_java_17_is_recognised_by_its_release_file(tmp_path: Path, version: str) -> None:
    """Every update of Java 17 is accepted, and reported with its full version."""
    found = java_at(install(tmp_path / "java", version))

    assert found is not None
    assert found.version == version


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "21.0.1", "170.1"])
def test_another_java_is_not_taken(tmp_path: Path, version: str) -> None:
    """Older and newer versions are refused: the jars are tested with 17."""
    assert java_at(install(tmp_path / "java", version)) is None


def test_a_folder_without_java_is_not_taken(tmp_path: Path) -> None:
    """An empty folder, or one whose java cannot be executed, is not a Java."""
    assert java_at(tmp_path) is None
    home = install(tmp_path / "java", "17.0.1")
    (home / "bin" / "java").chmod(0o644)
    assert java_at(home) is None


def test_java_home_comes_before_the_path(place: Place, tmp_path: Path) -> None:
    """JAVA_HOME is checked before the PATH, as other programs do."""
    first, second = install(tmp_path / "first", "17.0.1"), install(tmp_path / "second", "17.0.2")

    found, _ = ensure_java(place, {"JAVA_HOME": str(first), "PATH": str(second / "bin")})

    assert found.home == first
    assert not (place.home / "java").exists()


def test_java_17_elsewhere_is_linked(place: Place, tmp_path: Path) -> None:
    """If the Java on the PATH is another version, a Java 17 of the system is linked to .soal/java."""
    other = install(tmp_path / "other", "21.0.1")
    system = install(tmp_path / "jvm" / "java-17", "17.0.3")

    found, step = ensure_java(place, {"PATH": str(other / "bin")})

    assert found.home == system
    assert step.changed
    assert (place.home / "java").resolve() == system
    again, step = ensure_java(place, {"PATH": str(other / "bin")})
    assert again.version == "17.0.3"
    assert not step.changed


def test_a_link_that_is_no_longer_needed_goes(place: Place, tmp_path: Path) -> None:
    """An old link is removed when the PATH has Java 17 again."""
    install(tmp_path / "jvm" / "java-17", "17.0.3")
    ensure_java(place, {"PATH": ""})
    assert (place.home / "java").is_symlink()
    right = install(tmp_path / "right", "17.0.4")

    found, _ = ensure_java(place, {"PATH": str(right / "bin")})

    assert found.home == right
    assert not (place.home / "java").is_symlink()


def test_a_runtime_without_compiler_is_told(tmp_path: Path) -> None:
    """The compiler of a JRE is None."""
    home = install(tmp_path / "java", "17.0.1")
    runtime = java_at(home)
    (home / "bin" / "javac").touch(mode=0o755)
    development = java_at(home)

    assert runtime is not None
    assert development is not None
    assert development.javac == home / "bin" / "javac"


def test_set_up_installs_java_and_maven_and_other_commands_only_name_what_is_missing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller brings the means to install; without it Maven is an error that names its package."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", str(bin_folder))
    asked = []

    def by_apt(package: str) -> bool:
        asked.append(package)
        if package == "maven":
            (bin_folder / "mvn").touch(mode=0o755)
        else:
            install(tmp_path / "jvm" / "java-17", "17.0.3")
        return True

    found, _ = ensure_java(place, {"PATH": str(bin_folder)}, by_apt)
    with pytest.raises(Failure, match="Maven") as caught:
        find_maven(found)
    assert "apt install maven" in caught.value.todo
    assert find_maven(found, by_apt).program == str(bin_folder / "mvn")
    assert asked == ["openjdk-17-jdk-headless", "maven"]
