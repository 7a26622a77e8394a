"""`scripts/setup` makes the image's variant full on request only, updates an existing one, and stamps a whole one."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import __main__ as provision
from scripts.provision.place import ROOT, Place
from scripts.provision.python_env import is_complete
from scripts.provision.steps import Found
from soal.console.problem import Failure

if TYPE_CHECKING:
    from pathlib import Path

STEPS = ("ensure_packages", "ensure_jars", "ensure_logstore", "ensure_archive", "ensure_rie", "link_jars")


class Steps:
    """Fakes of set-up's steps, which only record their calls with list or variant; the step `fails` raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
        self.place, self.taken, self.fails = place, list[tuple[str, ...]](), ("", "")
        for name in STEPS:
            monkeypatch.setattr(provision, name, lambda *given, name=name: self.take(name, *given))
        monkeypatch.setattr(provision, "ensure_java", lambda *_: (None, Found("Java")))
        monkeypatch.setattr(provision, "ensure_spark", lambda _: self)
        monkeypatch.setattr(provision, "Place", lambda _: place)

    def complete(self) -> Found:
        return Found("packages")

    def take(self, name: str, *given: Any) -> Found:
        step = (name, *(word for word in given if isinstance(word, str)))
        self.taken.append(step)
        if step == self.fails:
            raise Failure(name, todo="nothing")
        return Found(name)

    def of_full(self) -> list[tuple[str, ...]]:
        return [step for step in self.taken if "full" in step or "full-jars" in step or step == ("link_jars",)]


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    place = Place(tmp_path)
    (place.home / "full" / "python").mkdir(parents=True)
    return Steps(monkeypatch, place)


MADE = [("ensure_packages", "full"), ("ensure_jars", "full-jars"), ("link_jars",)]


def test_the_variant_full_is_stamped_once_it_is_whole(steps: Steps) -> None:
    """The variant full is stamped after its last step, the archive."""
    steps.fails = ("ensure_archive", "full")
    assert provision.main(["--variant", "full"]) == 1
    assert steps.of_full() == [*MADE, ("ensure_archive", "full")]
    assert not is_complete(steps.place.home)
    steps.fails = ("", "")
    assert provision.main(["--variant", "full"]) == 0
    assert is_complete(steps.place.home)


def test_a_set_up_keeps_the_variant_full_up_to_date(steps: Steps) -> None:
    """Set-up updates the variant full, and its archive only if it has one."""
    assert provision.main([]) == 0
    assert steps.of_full() == MADE
    assert is_complete(steps.place.home)
    (steps.place.home / "full" / "spark.jsa").touch()
    steps.taken.clear()
    assert provision.main([]) == 0
    assert steps.of_full() == [*MADE, ("ensure_archive", "full")]


def test_a_set_up_does_not_make_the_variant_full_unasked(steps: Steps) -> None:
    """Set-up makes the variant full only on request, since it takes a minute."""
    (steps.place.home / "full" / "python").rmdir()
    (steps.place.home / "full").rmdir()
    assert provision.main([]) == 0
    assert steps.of_full() == []
    assert not (steps.place.home / "full").exists()


def test_a_set_up_begins_with_a_python_that_has_no_package() -> None:
    """Its modules come from the standard library and this clone: a fresh machine has nothing else (`-S`)."""
    begin = "import runpy, sys; sys.path.insert(0, '.'); runpy.run_module('scripts.provision', run_name='__main__')"

    command = [sys.executable, "-S", "-P", "-c", begin, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
