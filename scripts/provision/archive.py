"""The class-data archive of the working tree, `.soal/spark.jsa`: tests and local runs start twice as fast with it.

Nothing needs it: if it cannot be made, set-up says so and continues.
"""

from __future__ import annotations

import platform
import subprocess
from typing import TYPE_CHECKING, Final

from handler.spark.archive import archive_of
from handler.spark.classpath import archived_jars
from scripts.provision.command import run
from scripts.provision.place import fingerprint
from scripts.provision.report import Found, SetupError, say

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.provision.java import Java
    from scripts.provision.place import Place

__all__ = ["ensure_archive", "inputs_of"]

_TODO: Final = "nothing, if you can wait for Spark; else see above, then run scripts/setup again"


def ensure_archive(place: Place, java: Java) -> Found:
    """Train when Java, the jars or the training have changed, or when the archive is not the one made from them."""
    stamp = place.stamp("archive")
    archive = archive_of(place.home)
    inputs = inputs_of(place, java)
    if stamp.matches(f"{inputs} {_mark(archive)}"):
        return Found("class-data archive" if archive.is_file() else "no class-data archive")
    stamp.clear()
    why = "its Java has no archive of its own to build on" if not _has_base(java) else _train(place, java)
    if why is not None:
        archive.unlink(missing_ok=True)
        say(f"no class-data archive, so Spark starts slowly: {why}")
    # From now on the class path holds the copies of signed jars that the training makes.
    stamp.write(f"{inputs_of(place, java)} {_mark(archive)}")
    return Found("class-data archive trained" if why is None else "no class-data archive", changed=True)


def inputs_of(place: Place, java: Java) -> str:
    """Hash the inputs that Java compares (jars with size and time stamp, its own version), and the training."""
    spark_home = next(place.venv.glob("lib/python3.*/site-packages/pyspark"), place.venv)
    stats = [(jar, jar.stat()) for jar in archived_jars(spark_home, place.home)]
    lines = [f"{jar} {stat.st_size} {int(stat.st_mtime)}\n" for jar, stat in stats]
    training = [
        *(place.root / "image" / "archive" / name for name in ("train.py", "lambdas.txt")),
        *(place.root / "scripts" / "image" / name for name in ("archive.py", "lambdas.py", "unsigned.py")),
        *sorted(
            (place.root / "image" / "logstore" / "src" / "main" / "java" / "io" / "soal" / "archive").glob("*.java")
        ),
    ]
    return fingerprint([*training, *lines, f"{java.home} {java.version} {platform.machine()}"])


def _mark(archive: Path) -> str:
    """Return size and time stamp: to read the quarter of a gigabyte would take too long."""
    try:
        stat = archive.stat()
    except FileNotFoundError:
        return "none"
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _has_base(java: Java) -> bool:
    """Ask whether Java starts with the archive of its own classes; one from PyPI comes without."""
    command = [str(java.java), "-Xshare:on", "-version"]
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def _train(place: Place, java: Java) -> str | None:
    """Train; return why it failed, or None."""
    say("training the class-data archive (about a minute, once)")
    env = {"JAVA_HOME": str(java.home), "PYTHONPATH": str(place.root)}
    try:
        run(
            [place.python, "-P", "-m", "scripts.image.archive", place.home],
            what="training the class-data archive",
            todo=_TODO,
            env=env,
        )
    except SetupError as error:
        return str(error)
    return None
