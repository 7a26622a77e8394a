"""`.venv`: exactly what requirements/dev.txt lists, and this project in it, editable."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.provision.command import run
from scripts.provision.place import Stamp, fingerprint
from scripts.provision.report import Found, say

if TYPE_CHECKING:
    from scripts.provision.place import Place

__all__ = ["ensure_python", "inputs_of"]

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
_SPACE: Final = "see above, then run scripts/setup again"
_NETWORK: Final = "check the network and pip's index settings, then run scripts/setup again"


def ensure_python(place: Place) -> Found:
    """Create or bring up to date the virtual environment.

    uv does the work, itself installed by pip with its hash: it is fast, and it removes packages that are not listed.
    Every package is checked by hash, also those that build source distributions.
    """
    stamp = Stamp(place.venv / "soal.stamp")
    inputs = inputs_of(place)
    found = f"Python {platform.python_version()}"
    usable = _is_usable(place)
    if usable and stamp.matches(inputs):
        return Found(found)
    # Without a stamp an earlier run was killed half-way: a package may be there in part, and no installer would notice.
    was_complete = usable and stamp.path.exists()
    stamp.clear()
    if not was_complete:
        _create(place)
    say("installing the Python packages of requirements/dev.txt")
    pip: list[str | Path] = [
        place.python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--require-hashes",
    ]
    run([*pip, "--requirement", place.requirements / "uv.txt"], what="installing uv", todo=_NETWORK)
    uv: list[str | Path] = [place.venv / "bin" / "uv", "pip"]
    here: list[str | Path] = ["--python", place.python, "--build-constraint", place.requirements / "build.txt"]
    lock = place.requirements / "dev.txt"
    run([*uv, "sync", *here, "--require-hashes", lock], what=f"installing {lock}", todo=_NETWORK)
    run([*uv, "install", *here, "--no-deps", "--editable", place.root], what="installing soal", todo=_NETWORK)
    # uv does not compile them, and a job's Python keeps no compiled files: it would compile them at each start.
    packages = [path for name in _IMPORTED for path in place.venv.glob(f"lib/python3.*/site-packages/{name}")]
    run([place.python, "-m", "compileall", "-q", "-j", "0", *packages], what="compiling packages", todo=_SPACE)
    # As in the image. Python workers would import PySpark from its zip file, compile it at each start, and read the
    # file's whole directory in each task: a tenth of a second.
    for copy in place.venv.glob("lib/python3.*/site-packages/pyspark/python/lib/*.zip"):
        copy.unlink()
    stamp.write(inputs)
    return Found(f"{found}, packages brought up to date", changed=True)


def inputs_of(place: Place) -> str:
    """Hash the inputs of the environment: the locks, the parts of pyproject.toml that pip reads, and the place."""
    project = tomllib.loads((place.root / "pyproject.toml").read_text(encoding="utf-8"))
    installed = [project["project"], project["build-system"], project["tool"]["hatch"]]
    locks = [place.requirements / f"{name}.txt" for name in ("dev", "build", "uv")]
    return fingerprint([*locks, json.dumps(installed, sort_keys=True), str(place.root)])


def _is_usable(place: Place) -> bool:
    command: list[str | Path] = [place.python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def _create(place: Place) -> None:
    # Not sys.executable: that may be the environment which is being replaced.
    base = Path(getattr(sys, "_base_executable", sys.executable))
    say(f"creating {place.venv} with Python {platform.python_version()}")
    run(
        [base, "-m", "venv", "--clear", place.venv],
        what=f"creating {place.venv}",
        todo="install Python's venv module (Debian, Ubuntu: apt install python3-venv), then run scripts/setup again",
    )
