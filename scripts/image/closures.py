"""The jar in which the closures of Scala are classes, so that the class-data archive can contain them.

A Spark job uses thousands of lambda expressions. Java generates a class for each while the job runs, a tenth of a cold
run, and archives only those that are not serialisable; Scala's are. `io.soal.build.Closures` generates the classes
beforehand, for the classes in image/archive/closures.txt: those whose lambda expressions the training uses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.spark.classpath import OWN, added_jars, archived_jars, closures_jar
from handler.spark.installation import find_java, pyspark_home

if TYPE_CHECKING:
    from handler.settings import HandlerSettings

LIST: Final = Path(__file__).resolve().parents[2] / "image" / "archive" / "closures.txt"
_TOOL: Final = "io.soal.build.Closures"
_TIMEOUT_S: Final = 300
STAMP_S: Final = 1_577_836_800
"""2020-01-01: Java compares the time stamps of jars with those in the archive."""


class TrainingError(Exception):
    """The archive, or this jar for it, could not be made. The message contains the last lines of the tool."""


def make_jar(settings: HandlerSettings, names: Path = LIST) -> Path:
    """Make the jar for the jars of `settings`, delete outdated ones, and return its path. Raises `TrainingError`."""
    home = settings.soal_home
    shutil.rmtree(home / "closures", ignore_errors=True)
    sources = archived_jars(pyspark_home(), home)
    jar = closures_jar(home, (source.name for source in sources))
    jar.parent.mkdir(parents=True)
    fresh = jar.with_suffix(".new")
    tools = [jar for jar in added_jars(home) if jar.name.startswith(OWN)]
    class_path = ":".join(str(jar) for jar in (*tools, *sources))
    command = [
        str(find_java(settings.soal_home, settings.java_home)),
        "-XX:TieredStopAtLevel=1",
        "-cp",
        class_path,
        _TOOL,
        str(fresh),
        str(names),
    ]
    process = subprocess.run(
        [*command, *(str(jar) for jar in sources)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if process.returncode != 0:
        raise TrainingError(
            f"the classes of lambda expressions could not be made:\n{(process.stdout + process.stderr)[-4000:]}"
        )
    os.utime(fresh, (STAMP_S, STAMP_S))
    return fresh.rename(jar)
