"""The Python environments: `.venv`, and in the home of each variant (soal/home.py) the image's packages.

`.venv` contains exactly the packages of requirements/dev.txt, and this project, editable. A variant's packages are
links to uv's unpacked packages, so they cost neither time nor space. The jars of the variant full are links, too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import SLIM
from scripts.image.trim import REPLACED, trim
from scripts.provision.place import Stamp, fingerprint
from scripts.provision.steps import Found, run, say
from soal.console.problem import Failure
from soal.home import home_of, python_of, site_of
from soal.source_paths import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.spark.missing_dependencies import Variant
    from scripts.provision.place import Place

_IMPORTED: Final = (
    "pyspark",
    "py4j",
    "boto3",
    "botocore",
    "s3transfer",
    "urllib3",
    "aws_lambda_powertools",
    "pydantic",
    "numpy",
    "pandas",
    "pyarrow",
)
_SPARK: Final = ("runtime", "local")
"""The locks with the packages that the training of the class-data archive imports."""
_TESTS: Final = "[/]tests[/]"
"""Tests are more than half of the packages' code, and no job imports them."""
_STAMP: Final = "soal.stamp"
# PySpark's source distribution is nearly all jars. Compressing them into a wheel takes longer than the rest of the
# build, and uv unpacks the wheel immediately.
_STORED: Final = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
_SPACE: Final = "see above, then run scripts/setup again"
_NETWORK: Final = "check the network and pip's index settings, then run scripts/setup again"


@dataclass(frozen=True, slots=True)
class Packages:
    """An environment with Spark's packages. `complete` installs the others, while other steps use Spark."""

    place: Place
    inputs: str
    is_complete: bool

    def complete(self) -> Found:
        """Install exactly the locked packages, and this project. Raises `Failure`."""
        python, place = f"Python {platform.python_version()}", self.place
        if self.is_complete:
            return Found(python)
        lock = place.requirements / "dev.txt"
        say(f"installing the Python packages of {lock.relative_to(place.root)}")
        _uv(place, "sync", "--require-hashes", lock, act=f"installing {lock}")
        _uv(place, "install", "--no-deps", "--editable", place.root, act="installing soal")
        # uv does not compile packages, and a job's Python keeps no compiled files: it would compile at each start.
        packages = [path for name in _IMPORTED for path in _site(place, name)]
        compile_all: list[str | Path] = [place.python, "-m", "compileall", "-q", "-j", "0", "-x", _TESTS]
        run([*compile_all, *packages], act="compiling packages", todo=_SPACE)
        Stamp(place.venv / _STAMP).write(self.inputs)
        return Found(f"{python}, packages brought up to date", changed=True)


def ensure_spark(place: Place) -> Packages:
    """Create the virtual environment if it is missing, and install the packages that Spark and the training need.

    pip installs uv, and uv the packages: it is fast, and it removes unlisted packages. Every package is checked by
    hash, including build dependencies. Raises `Failure`.
    """
    stamp = Stamp(place.venv / _STAMP)
    inputs = inputs_of(place)
    usable = is_usable(place.python)
    if usable and stamp.matches(inputs):
        return Packages(place, inputs, is_complete=True)
    # Without a stamp an earlier run was killed: a package may be incomplete, which no installer would notice.
    was_complete = usable and stamp.path.exists()
    stamp.clear()
    if not was_complete:
        _create(place)
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--require-hashes", "--requirement")
    run([place.python, *pip, place.requirements / "uv.txt"], act="installing uv", todo=_NETWORK)
    locks = [place.requirements / f"{name}.txt" for name in _SPARK]
    say("installing PySpark")
    words = [word for lock in locks for word in ("--requirement", lock)]
    _uv(place, "install", "--require-hashes", *words, act=f"installing {' and '.join(map(str, locks))}")
    # As in the image: Python workers would import PySpark from its zip file, compile it at each start, and read the
    # zip's directory in each task, which takes 0.1 s.
    for copy in _site(place, "pyspark/python/lib/*.zip"):
        copy.unlink()
    return Packages(place, inputs, is_complete=False)


def inputs_of(place: Place) -> str:
    """Hash the inputs of the environment: the locks, the parts of pyproject.toml that pip reads, and the root."""
    project = tomllib.loads((place.root / "pyproject.toml").read_text(encoding="utf-8"))
    installed = [project["project"], project["build-system"], project["tool"]["hatch"]]
    locks = [place.requirements / f"{name}.txt" for name in ("dev", "build", "uv")]
    return fingerprint([*locks, json.dumps(installed, sort_keys=True), str(place.root)])


def build_options(place: Place) -> tuple[str | Path, ...]:
    """Return uv's options for builds. Use the same everywhere: with others, uv would build PySpark again."""
    return ("--build-constraint", place.requirements / "build.txt", *_STORED)


def is_usable(python: Path) -> bool:
    """Return whether an environment's Python starts: a system update may have removed its base Python."""
    command: list[str | Path] = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def _uv(place: Place, command: str, *args: str | Path, act: str) -> None:
    options: list[str | Path] = ["--python", place.python, *build_options(place)]
    run([place.venv / "bin" / "uv", "pip", command, *options, *args], act=act, todo=_NETWORK)


def _site(place: Place, pattern: str) -> Iterator[Path]:
    return place.venv.glob(f"lib/python3.*/site-packages/{pattern}")


def _create(place: Place) -> None:
    # Not sys.executable, which may belong to the environment that is being replaced.
    base = Path(getattr(sys, "_base_executable", sys.executable))
    say(f"creating {place.venv} with Python {platform.python_version()}")
    run(
        [base, "-m", "venv", "--clear", place.venv],
        act=f"creating {place.venv}",
        todo="install Python's venv module (Debian, Ubuntu: apt install python3-venv), then run scripts/setup again",
    )


FULL: Final = "full"

_TODO: Final = "see above, then run scripts/setup again"
_OWN: Final = ("jars", "full-jars")
"""The lists of jars that make up the variant full."""


def ensure_packages(place: Place, variant: Variant) -> Found:
    """Make a variant's Python contain exactly its locked packages, trimmed as in the image, and SafeWriter."""
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
        act=f"creating {python.parents[1]}",
        todo=_TODO,
    )
    words = [word for lock in locks for word in ("--requirement", lock)]
    _install(place, python, "--require-hashes", *words)
    site = site_of(home)
    if site is None:
        raise Failure(f"{python} has no folder for packages", todo=_TODO)
    trim(site / "pyspark", variant)
    _link_ours(place, site)
    run([python, "-m", "compileall", "-q", "-j", "0", site], act="compiling packages", todo=_TODO)
    stamp.write(inputs)
    return Found(f"packages of the variant {variant} installed", changed=True)


def _install(place: Place, python: Path, *words: str | Path) -> None:
    """Install from uv's cache, else from the registry: with some registries uv would build PySpark again."""
    uv: list[str | Path] = [place.venv / "bin" / "uv", "pip", "install", "--quiet", "--python", python]
    command = [*uv, *build_options(place), *words]
    act = f"installing packages for {python}"
    try:
        run([*command, "--offline"], act=act, todo=_TODO)
    except Failure:
        run(command, act=act, todo=_TODO)


def _link_ours(place: Place, site: Path) -> None:
    """Link SafeWriter to the working tree, so that changes need no set-up. As in the image, the handler is not on the
    path: a job may have a module of that name.
    """
    (site / "safewriter").symlink_to(place.root / "safewriter")


def link_jars(place: Place) -> Found:
    """Link the image's jars, those of the variant full, and Java into the home of the variant full.

    It replaces only wrong links, one by one, so that a running job finds the folder and its jars at any time.
    """
    home = home_of(place.home, FULL)
    folder, java = home / "jars", home / "java"
    folder.mkdir(parents=True, exist_ok=True)
    targets = [jar for name in _OWN for jar in (place.home / name).glob("*.jar")]
    links = {folder / jar.name: os.path.relpath(jar, folder) for jar in targets}
    if (place.home / "java").exists():
        links[java] = "../java"
    present = [*folder.iterdir(), *([java] if java.is_symlink() else [])]
    present_links = {path: str(path.readlink()) if path.is_symlink() else None for path in present}
    wrong = {path: target for path, target in links.items() if present_links.get(path) != target}
    with place.scratch() as scratch:
        for path, target in wrong.items():
            link = scratch / path.name
            link.symlink_to(target)
            link.replace(path)
    for path in (stale := present_links.keys() - links.keys()):
        path.unlink()
    return Found(f"{len(targets)} jars of the variant {FULL} linked", changed=bool(stale or wrong))


def mark_complete(place: Place) -> None:
    """Stamp the home of the variant full, as its last step."""
    _stamp_of_home(place.home).write(_content(place.home))


def is_complete(soal: Path) -> bool:
    """Return whether the home of the variant full is as set-up last completed it. `soal` is the home of slim."""
    return _stamp_of_home(soal).matches(_content(soal))


def _stamp_of_home(soal: Path) -> Stamp:
    return Stamp(home_of(soal, FULL) / _STAMP)


def _content(soal: Path) -> str:
    """Hash the stamp of the packages, which is missing during an installation, and the names of the jars. Broken links
    do not count: their jars were replaced.
    """
    home = home_of(soal, FULL)
    packages = home / "python" / _STAMP
    jars = sorted(jar.name for jar in (home / "jars").glob("*.jar") if jar.is_file())
    return fingerprint([packages.read_text(encoding="utf-8") if packages.is_file() else "", *jars])
