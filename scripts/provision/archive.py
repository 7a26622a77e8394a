"""The class-data archives of the working tree, `.soal/spark.jsa` and that of the variant full. Tests and local runs
start twice as fast with them.

They are optional: if set-up cannot make one, it says so and continues, and the next set-up tries again.
"""

from __future__ import annotations

import platform
import subprocess
from typing import TYPE_CHECKING, Final

from handler.spark.archive import archive_of
from handler.spark.classpath import archived_jars
from handler.spark.missing_dependencies import SLIM
from scripts.provision.place import fingerprint
from scripts.provision.steps import Found, run, say
from soal.console.problem import Failure
from soal.home import home_of, pyspark_of, site_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from scripts.provision.java import Java
    from scripts.provision.place import Place

_TRAINING: Final[Mapping[Variant, tuple[str, ...]]] = {"slim": ("train.py",), "full": ("train.py", "train_full.py")}
_TODO: Final = "nothing, if you can wait for Spark; else see above, then run scripts/setup again"


def ensure_archive(place: Place, java: Java, variant: Variant = SLIM) -> Found:
    """Train if Java, the jars or the training have changed, or if the archive was not made from them."""
    stamp = place.stamp("archive" if variant == SLIM else f"archive-{variant}")
    archive = archive_of(home_of(place.home, variant))
    inputs = inputs_of(place, java, variant)
    if archive.is_file() and stamp.matches(f"{inputs} {_mark(archive)}"):
        return Found("class-data archive")
    stamp.clear()
    reason = "its Java has no archive of its own to build on" if not _has_base(java) else _train(place, java, variant)
    if reason is not None:
        archive.unlink(missing_ok=True)
        say(f"no class-data archive, so Spark starts slowly: {reason}")
        return Found("no class-data archive")
    # Compute the inputs again: the training has put unsigned copies of jars on the class path.
    stamp.write(f"{inputs_of(place, java, variant)} {_mark(archive)}")
    return Found("class-data archive trained", changed=True)


def inputs_of(place: Place, java: Java, variant: Variant = SLIM) -> str:
    """Hash the inputs that Java compares (its version, and size and time stamp of the jars), and the training."""
    home = home_of(place.home, variant)
    stats = [(jar, jar.stat()) for jar in archived_jars(pyspark_of(home) or place.venv, home)]
    lines = [f"{jar} {stat.st_size} {int(stat.st_mtime)}\n" for jar, stat in stats]
    training = [
        *(place.root / "image" / "archive" / name for name in (*_TRAINING[variant], "closures.txt")),
        *(place.root / "scripts" / "image" / name for name in ("training.py", "closures.py", "unsigned.py")),
        *sorted((place.root / "image" / "logstore" / "src" / "main" / "java" / "io" / "soal" / "build").glob("*.java")),
    ]
    return fingerprint([*training, *lines, f"{java.home} {java.version} {platform.machine()}"])


def _mark(archive: Path) -> str:
    """Return size and time stamp: reading 250 MB would take too long."""
    stat = archive.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _has_base(java: Java) -> bool:
    """Return whether Java starts with the archive of its own classes; Java from PyPI comes without it."""
    command = [str(java.java), "-Xshare:on", "-version"]
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def _train(place: Place, java: Java, variant: Variant) -> str | None:
    """Train; return why it failed, or None."""
    say(f"training the class-data archive of the variant {variant} (about a minute, once)")
    home = home_of(place.home, variant)
    # The variant's packages, with PySpark, come first; the S3 emulator is in `.venv`.
    env = {"JAVA_HOME": str(java.home), "PYTHONPATH": f"{site_of(home)}:{place.root}"}
    try:
        run(
            [place.python, "-P", "-m", "scripts.image.training", home, variant],
            act="training the class-data archive",
            todo=_TODO,
            env=env,
        )
    except Failure as error:
        return error.told
    return None
