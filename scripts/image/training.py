"""Make the class-data archive: run a script of image/archive as the handler would, and archive the loaded classes.

`python -m scripts.image.training SOAL_HOME VARIANT`: scripts/setup runs it for the working tree, the Dockerfile for the
image. It uses the PySpark that this process imports. The job reads and writes an S3 in this process.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from handler.credentials import credentials_for_java
from handler.driver import bootstrap
from handler.request.job import requested
from handler.sandbox.sandbox import open_sandbox
from handler.sandbox.script import Files
from handler.settings import read_settings
from handler.spark.archive import archive_of
from handler.spark.classpath import OWN, added_jars, archived_jars
from handler.spark.command import HOST, RUNNER, compose
from handler.spark.environment import AttemptVariables
from handler.spark.installation import find_java, pyspark_home
from handler.spark.machine import Machine
from handler.spark.missing_dependencies import SLIM, Variant
from handler.spark_settings.own_disk import STOCK
from safewriter.deadline import epoch_ms
from safewriter.record.journal import Journal
from scripts.image.closures import LIST, TrainingError, make_jar
from scripts.image.unsigned import copy_unsigned
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handler.settings import HandlerSettings

_FOLDER: Final = Path(__file__).resolve().parents[2] / "image" / "archive"
TRAINING: Final[Mapping[Variant, Path]] = {"slim": _FOLDER / "train.py", "full": _FOLDER / "train_full.py"}
_LAKE: Final = "training"
_CHECKPOINTS: Final = "training-checkpoints"
_MACHINE: Final = Machine(memory_mb=3008, cores_present=2)
_TIMEOUT_S: Final = 900
_CHECK_TIMEOUT_S: Final = 60
# Suppress the lines about thousands of classes that cannot be archived (generated ones, old ones).
_QUIET: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_TAIL: Final = 4000


def train(home: Path, variant: Variant = SLIM, *, names: Path = LIST, log: Path | None = None) -> Path:
    """Train and write the archive of `home`; return its path. An existing archive is deleted first.

    `names` lists the classes whose lambda expressions become classes. Java logs the classes that it loads to `log`.
    """
    archive = archive_of(home)
    archive.unlink(missing_ok=True)
    spark_home = pyspark_home()
    copy_unsigned((*spark_home.glob("jars/*.jar"), *home.glob("jars/*.jar")), home / "unsigned")
    with EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS), unlistable=(_CHECKPOINTS,)) as s3:
        os.environ |= s3.environment()  # Java asks this process for credentials
        variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": _CHECKPOINTS, "SOAL_JIT": "c1"}
        settings = read_settings({**_java(), **variables, "SOAL_HOME": str(home)})
        fresh = archive.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        try:
            make_jar(settings, names)
            _run(TRAINING[variant], settings, variables, fresh, log)
            _check(settings, fresh)
            fresh.chmod(0o644)  # Java makes it 0444; the owner must be able to replace it
            fresh.replace(archive)
        finally:
            fresh.unlink(missing_ok=True)
    return archive


def _run(training: Path, settings: HandlerSettings, variables: dict[str, str], archive: Path, log: Path | None) -> None:
    """Run the training as the handler runs a job, but without the jars that may change and are not archived."""
    home = settings.soal_home
    job = requested(f"s3://{_LAKE}/{training.name}", settings, "training").job
    job = dataclasses.replace(
        job,
        arguments=(f"s3a://{_LAKE}",),
        conf={"spark.jars": ",".join(str(jar) for jar in added_jars(home) if jar.name.startswith(OWN)), **STOCK},
    )
    with open_sandbox(settings.tmp) as sandbox, Journal(sandbox.journal):
        attempt = AttemptVariables("training", "training", epoch_ms() + _TIMEOUT_S * 1000, _TIMEOUT_S * 1000)
        sandbox.go.touch()
        inherited = {**variables, **credentials_for_java()}
        command = compose(job, Files(training, ()), sandbox, settings, _MACHINE, attempt, inherited)
        # The host is in a jar that may change.
        at = command.submission.index(RUNNER[0])
        submission = (*command.submission[:at], bootstrap.__file__, *command.submission[at + len(RUNNER) :])
        argv = [*command.argv[: command.argv.index(HOST)], "org.apache.spark.deploy.SparkSubmit", *submission]
        argv[argv.index("-cp") + 1] = _class_path(home)
        logged = () if log is None else (f"-Xlog:class+load=info:file={log}",)
        argv[1:1] = [f"-XX:ArchiveClassesAtExit={archive}", *_QUIET, *logged]
        try:
            process = subprocess.run(
                argv,
                env=dict(command.environment),
                cwd=command.directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TrainingError(f"the training did not end within {_TIMEOUT_S} s") from error
    if process.returncode != 0 or not archive.is_file():
        output = (process.stdout + process.stderr)[-_TAIL:]
        raise TrainingError(f"the training ended with exit code {process.returncode}:\n{output}")


def _check(settings: HandlerSettings, archive: Path) -> None:
    """Start Java with `-Xshare:on`, which fails if Java rejects the archive. Without it Java ignores the archive."""
    command = [
        str(find_java(settings.soal_home, settings.java_home)),
        f"-XX:SharedArchiveFile={archive}",
        "-Xshare:on",
        "-cp",
        _class_path(settings.soal_home),
        "org.apache.spark.deploy.SparkSubmit",
        "--version",
    ]
    process = subprocess.run(command, capture_output=True, text=True, timeout=_CHECK_TIMEOUT_S, check=False)
    if process.returncode != 0:
        output = (process.stdout + process.stderr)[-_TAIL:]
        raise TrainingError(f"Java does not take the archive that it has made:\n{output}")


def _class_path(home: Path) -> str:
    return ":".join(str(jar) for jar in archived_jars(pyspark_home(), home))


def _java() -> dict[str, str]:
    return {name: os.environ[name] for name in ("JAVA_HOME",) if os.environ.get(name)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archive of a home and print its size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("variant", choices=get_args(Variant))
    options = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        archive = train(options.home.resolve(), options.variant)
    except TrainingError as error:
        print(f"archive: failed: {error}", file=sys.stderr)
        return 1
    size_mb = archive.stat().st_size / 1e6
    print(f"archive: {archive}, {size_mb:.0f} MB, trained in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
