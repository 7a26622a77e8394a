"""A local function runs the image's variant slim or full from its own home, or names the command that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.local.function import home_of_variant
from scripts.provision.place import Place
from scripts.provision.python_env import mark_complete
from soal.console.problem import Problem
from soal.home import Home

if TYPE_CHECKING:
    from pathlib import Path


def test_a_variant_that_was_not_made_names_the_command(tmp_path: Path) -> None:
    """A missing variant is a problem that names the command."""
    with pytest.raises(Problem) as caught:
        home_of_variant(Home(tmp_path), "full")
    assert "scripts/setup --variant full" in caught.value.todo


def made(path: Path) -> Home:
    """Make a home with a Python and a jar."""
    home = Home(path)
    for file in (home.python, home.python.parents[1] / "soal.stamp", home.jars / "delta.jar"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    return home


def test_a_variant_has_a_home(tmp_path: Path) -> None:
    """Each variant has its home; that of slim is `.soal` itself."""
    place = Place(tmp_path)
    slim, full = made(place.home), made(place.home / "full")
    mark_complete(place)
    assert (home_of_variant(slim, "slim"), home_of_variant(slim, "full")) == (slim, full)


@pytest.mark.parametrize("lost", ["soal.stamp", "python/soal.stamp", "jars/delta.jar", "jars/link.jar"])
def test_a_variant_that_is_half_made_or_has_lost_something_names_the_command(tmp_path: Path, lost: str) -> None:
    """A missing stamp of set-up or packages, a missing jar, or a broken link to a jar is a problem."""
    place = Place(tmp_path)
    slim, full = made(place.home), made(place.home / "full")
    target = place.home / "linked.jar"
    target.touch()
    (full.jars / "link.jar").symlink_to(target)
    mark_complete(place)
    (full.path / lost).resolve().unlink()
    with pytest.raises(Problem, match="full, is incomplete or out of date") as caught:
        home_of_variant(slim, "full")
    assert "scripts/setup --variant full" in caught.value.todo
    mark_complete(place)
    (place.home / "full" / "jars" / "new.jar").touch()
    with pytest.raises(Problem):
        home_of_variant(slim, "full")
