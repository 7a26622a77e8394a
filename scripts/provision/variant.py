"""The homes of the image's variants (scripts/image/homes.py): packages and jars as the image has them.

The packages are links to those that uv has unpacked for `.venv`; they cost neither time nor space.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import SLIM
from scripts.image.trim import REPLACED, trim
from scripts.provision.command import run
from scripts.provision.place import Stamp, fingerprint
from scripts.provision.python_env import build_options, inputs_of, is_usable
from scripts.provision.report import Found, SetupError, say
from soal.home import home_of, python_of, site_of
from soal.tree import MISSING

if TYPE_CHECKING:
    from handler.spark.missing_dependencies import Variant
    from scripts.provision.place import Place

__all__ = ["FULL", "ensure_packages", "is_complete", "link_jars", "mark_complete"]

FULL: Final = "full"

_TODO: Final = "see above, then run scripts/setup again"
_STAMP: Final = "soal.stamp"
_OWN: Final = ("jars", "full-jars")
"""The lists of jars whose union the variant full has."""


def ensure_packages(place: Place, variant: Variant) -> Found:
    """Make the Python of a variant hold exactly its locked packages, trimmed as in the image, and SafeWriter."""
    home = home_of(place.home, variant)
    python, stamp = python_of(home), Stamp(home / "python" / _STAMP)
    names = ("runtime",) if variant == SLIM else ("runtime", "full")
    locks = [place.requirements / f"{name}.txt" for name in names]
    steps = [MISSING, REPLACED, place.root / "scripts" / "image" / "trim.py", Path(__file__)]
    inputs = fingerprint([inputs_of(place), *locks, *steps])
    if stamp.matches(inputs) and is_usable(python):
        return Found(f"packages of the variant {variant}")
    stamp.clear()
    say(f"installing the packages of the image's variant {variant}")
    run(
        [place.venv / "bin" / "uv", "venv", "--quiet", "--clear", "--python", place.python, python.parents[1]],
        what=f"creating {python.parents[1]}",
        todo=_TODO,
    )
    given = [word for lock in locks for word in ("--requirement", lock)]
    _install(place, python, "--require-hashes", *given)
    site = site_of(home)
    if site is None:
        raise SetupError(f"{python} has no folder for packages", todo=_TODO)
    trim(site / "pyspark", variant)
    _link_ours(place, site)
    run([python, "-m", "compileall", "-q", "-j", "0", site], what="compiling packages", todo=_TODO)
    stamp.write(inputs)
    return Found(f"packages of the variant {variant} installed", changed=True)


def _install(place: Place, python: Path, *words: str | Path) -> None:
    """Install from what uv has at hand: some registries have it build PySpark again. Without it, ask the registry."""
    uv: list[str | Path] = [place.venv / "bin" / "uv", "pip", "install", "--quiet", "--python", python]
    command = [*uv, *build_options(place), *words]
    what = f"installing packages for {python}"
    try:
        run([*command, "--offline"], what=what, todo=_TODO)
    except SetupError:
        run(command, what=what, todo=_TODO)


def _link_ours(place: Place, site: Path) -> None:
    """Let the library be the tree's, so that a change needs no set-up. As in the image, the handler is elsewhere: a job
    may have a module of this name.
    """
    (site / "safewriter").symlink_to(place.root / "safewriter")


def link_jars(place: Place) -> Found:
    """Make the home of the variant full have the jars of the image and its own, as links, and its Java.

    Link by link, and only where one is wrong: a job that runs meanwhile finds the folder and its jars at any time.
    """
    home = home_of(place.home, FULL)
    folder, java = home / "jars", home / "java"
    folder.mkdir(parents=True, exist_ok=True)
    targets = [jar for name in _OWN for jar in (place.home / name).glob("*.jar")]
    wanted = {folder / jar.name: os.path.relpath(jar, folder) for jar in targets}
    if (place.home / "java").exists():
        wanted[java] = "../java"
    present = [*folder.iterdir(), *([java] if java.is_symlink() else [])]
    found = {path: str(path.readlink()) if path.is_symlink() else None for path in present}
    wrong = {path: target for path, target in wanted.items() if found.get(path) != target}
    with place.scratch() as scratch:
        for path, target in wrong.items():
            link = scratch / path.name
            link.symlink_to(target)
            link.replace(path)
    for path in (stale := found.keys() - wanted.keys()):
        path.unlink()
    return Found(f"{len(targets)} jars of the variant {FULL} linked", changed=bool(stale or wrong))


def mark_complete(place: Place) -> None:
    """Stamp the home of the variant full: the last step that makes it."""
    _stamp_of_home(place.home).write(_content(place.home))


def is_complete(soal: Path) -> bool:
    """Tell whether the home of the variant full is what set-up last made to its end; `soal`: that of the slim one."""
    return _stamp_of_home(soal).matches(_content(soal))


def _stamp_of_home(soal: Path) -> Stamp:
    return Stamp(home_of(soal, FULL) / _STAMP)


def _content(soal: Path) -> str:
    """Hash the stamp of the packages, which is gone while they are installed, and the names of the jars. A link that
    leads nowhere does not count: its jar was replaced without it.
    """
    home = home_of(soal, FULL)
    packages = home / "python" / _STAMP
    jars = sorted(jar.name for jar in (home / "jars").glob("*.jar") if jar.is_file())
    return fingerprint([packages.read_text(encoding="utf-8") if packages.is_file() else "", *jars])
