"""`.venv`: exactly what requirements/dev.txt lists, and this project in it, editable."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.provision.command import run
from scripts.provision.place import Stamp, fingerprint
from scripts.provision.report import Found, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.provision.place import Place

__all__ = ["Packages", "build_options", "ensure_spark", "inputs_of", "is_usable"]

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
        found, place = f"Python {platform.python_version()}", self.place
        if self.is_complete:
            return Found(found)
        lock = place.requirements / "dev.txt"
        say(f"installing the Python packages of {lock.relative_to(place.root)}")
        _uv(place, "sync", "--require-hashes", lock, what=f"installing {lock}")
        _uv(place, "install", "--no-deps", "--editable", place.root, what="installing soal")
        # uv does not compile them, and a job's Python keeps no compiled files: it would compile them at each start.
        packages = [path for name in _IMPORTED for path in _site(place, name)]
        compile_all: list[str | Path] = [place.python, "-m", "compileall", "-q", "-j", "0", "-x", _TESTS]
        run([*compile_all, *packages], what="compiling packages", todo=_SPACE)
        Stamp(place.venv / _STAMP).write(self.inputs)
        return Found(f"{found}, packages brought up to date", changed=True)


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
    run([place.python, *pip, place.requirements / "uv.txt"], what="installing uv", todo=_NETWORK)
    locks = [place.requirements / f"{name}.txt" for name in _SPARK]
    say("installing PySpark")
    given = [word for lock in locks for word in ("--requirement", lock)]
    _uv(place, "install", "--require-hashes", *given, what=f"installing {' and '.join(map(str, locks))}")
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


def _uv(place: Place, command: str, *args: str | Path, what: str) -> None:
    here: list[str | Path] = ["--python", place.python, *build_options(place)]
    run([place.venv / "bin" / "uv", "pip", command, *here, *args], what=what, todo=_NETWORK)


def _site(place: Place, pattern: str) -> Iterator[Path]:
    return place.venv.glob(f"lib/python3.*/site-packages/{pattern}")


def _create(place: Place) -> None:
    # Not sys.executable: that may be the environment which is being replaced.
    base = Path(getattr(sys, "_base_executable", sys.executable))
    say(f"creating {place.venv} with Python {platform.python_version()}")
    run(
        [base, "-m", "venv", "--clear", place.venv],
        what=f"creating {place.venv}",
        todo="install Python's venv module (Debian, Ubuntu: apt install python3-venv), then run scripts/setup again",
    )
