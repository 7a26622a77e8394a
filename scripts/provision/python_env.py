"""The Python environments: `.venv`, and in the home of each variant (soal/home.py) the packages as the image has them.

`.venv` holds exactly what requirements/dev.txt lists, and this project, editable. The packages of a variant are links
to those that uv has unpacked for `.venv`; they cost neither time nor space. The jars of the variant full are links.
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
from scripts.provision.steps import Found, SetupError, run, say
from soal.home import home_of, python_of, site_of
from soal.tree import MISSING

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
"""Their locks hold what the training of the class-data archive imports."""
_TESTS: Final = "[/]tests[/]"
"""Those that packages bring along are more than half of their code, and no job imports them."""
_STAMP: Final = "soal.stamp"
# Nearly all of PySpark's source distribution is jars. To compress them into the wheel takes longer than the rest of its
# build, for a file that is unpacked at once.
_STORED: Final = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
_SPACE: Final = "see above, then run scripts/setup again"
_NETWORK: Final = "check the network and pip's index settings, then run scripts/setup again"


@dataclass(frozen=True, slots=True)
class Packages:
    """An environment that has what Spark needs; `complete` installs the others, beside what needs no more than that."""

    place: Place
    inputs: str
    is_complete: bool

    def complete(self) -> Found:
        """Bring the environment to exactly what is listed, and this project into it. Raises `SetupError`."""
        python, place = f"Python {platform.python_version()}", self.place
        if self.is_complete:
            return Found(python)
        lock = place.requirements / "dev.txt"
        say(f"installing the Python packages of {lock.relative_to(place.root)}")
        _uv(place, "sync", "--require-hashes", lock, act=f"installing {lock}")
        _uv(place, "install", "--no-deps", "--editable", place.root, act="installing soal")
        # uv does not compile them, and a job's Python keeps no compiled files: it would compile them at each start.
        packages = [path for name in _IMPORTED for path in _site(place, name)]
        compile_all: list[str | Path] = [place.python, "-m", "compileall", "-q", "-j", "0", "-x", _TESTS]
        run([*compile_all, *packages], act="compiling packages", todo=_SPACE)
        Stamp(place.venv / _STAMP).write(self.inputs)
        return Found(f"{python}, packages brought up to date", changed=True)


def ensure_spark(place: Place) -> Packages:
    """Create the virtual environment if it is missing, and install what Spark and the training need.

    uv does the work, itself installed by pip with its hash: it is fast, and it removes packages that are not listed.
    Every package is checked by hash, also those that build source distributions. Raises `SetupError`.
    """
    stamp = Stamp(place.venv / _STAMP)
    inputs = inputs_of(place)
    usable = is_usable(place.python)
    if usable and stamp.matches(inputs):
        return Packages(place, inputs, is_complete=True)
    # Without a stamp an earlier run was killed half-way: a package may be there in part, and no installer would notice.
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
    # As in the image. Python workers would import PySpark from its zip file, compile it at each start, and read the
    # file's whole directory in each task: a tenth of a second.
    for copy in _site(place, "pyspark/python/lib/*.zip"):
        copy.unlink()
    return Packages(place, inputs, is_complete=False)


def inputs_of(place: Place) -> str:
    """Hash the inputs of the environment: the locks, the parts of pyproject.toml that pip reads, and the place."""
    project = tomllib.loads((place.root / "pyproject.toml").read_text(encoding="utf-8"))
    installed = [project["project"], project["build-system"], project["tool"]["hatch"]]
    locks = [place.requirements / f"{name}.txt" for name in ("dev", "build", "uv")]
    return fingerprint([*locks, json.dumps(installed, sort_keys=True), str(place.root)])


def build_options(place: Place) -> tuple[str | Path, ...]:
    """Return uv's options for packages that it builds: with others, it would build PySpark a second time."""
    return ("--build-constraint", place.requirements / "build.txt", *_STORED)


def is_usable(python: Path) -> bool:
    """Start an environment's Python: an update of the system may have taken the one that it was made with."""
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
    # Not sys.executable: that may be the environment which is being replaced.
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
        act=f"creating {python.parents[1]}",
        todo=_TODO,
    )
    words = [word for lock in locks for word in ("--requirement", lock)]
    _install(place, python, "--require-hashes", *words)
    site = site_of(home)
    if site is None:
        raise SetupError(f"{python} has no folder for packages", todo=_TODO)
    trim(site / "pyspark", variant)
    _link_ours(place, site)
    run([python, "-m", "compileall", "-q", "-j", "0", site], act="compiling packages", todo=_TODO)
    stamp.write(inputs)
    return Found(f"packages of the variant {variant} installed", changed=True)


def _install(place: Place, python: Path, *words: str | Path) -> None:
    """Install from what uv has at hand: some registries have it build PySpark again. Without it, ask the registry."""
    uv: list[str | Path] = [place.venv / "bin" / "uv", "pip", "install", "--quiet", "--python", python]
    command = [*uv, *build_options(place), *words]
    act = f"installing packages for {python}"
    try:
        run([*command, "--offline"], act=act, todo=_TODO)
    except SetupError:
        run(command, act=act, todo=_TODO)


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
