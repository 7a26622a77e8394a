"""Findings about the programs that jobs here start: the doctor starts each once, harmlessly, since an existing file
may still not run.
"""

from __future__ import annotations

import platform
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.spark.archive import archive_of, archive_options, why_unused
from handler.spark.classpath import jars
from scripts.provision.checksums import read_sums, sha256_of
from scripts.provision.java import java_at
from scripts.provision.place import ROOT
from scripts.provision.report import SetupError
from scripts.provision.rie import binary_name
from soal.doctor.finding import Finding, finding
from soal.home import pyspark_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.provision.java import Java
    from soal.home import Home

__all__ = ["examine_programs"]

_SETUP: Final = "run scripts/setup"
_IMPORTS: Final = "import awslambdaric, boto3, pyiceberg, pyspark"
_TRAIN: Final = "remove it, and run scripts/setup, which makes it again"
_TIMEOUT_S: Final = 30
# A bad byte in a class ends in a crash or worse, and Java checks for one only with this option.
_VERIFY: Final = "-XX:+VerifySharedSpaces"
_SPOILT: Final = "hecksum verification failed"
# The emulator takes any option but its own for a program to serve; a log level that does not exist ends it.
_HARMLESS: Final = ("--log-level", "none")
_ENDED: Final = "Failed to set log level"


def examine_programs(home: Home, java_home: str | None) -> Iterator[Finding]:
    """Examine Java, the class-data archive as Java takes it, and the Lambda emulator."""
    found = _java_home(home, java_home)
    java = None if found is None else java_at(found)
    if found is None:
        yield Finding("Java", "fail", "there is none", _SETUP)
    elif java is None:
        yield Finding("Java", "fail", f"{found} is not Java 17", f"set JAVA_HOME to a Java 17, or {_SETUP}")
    else:
        yield Finding("Java", "ok", f"{java.version}, {java.home}")
    yield _packages(home)
    yield _archive(home, java)
    yield _rie(home)


def _java_home(home: Home, java_home: str | None) -> Path | None:
    """Search where the handler searches, in its order."""
    if (home.path / "java" / "bin" / "java").exists():
        return home.path / "java"
    if java_home:
        return Path(java_home)
    on_path = shutil.which("java")
    return Path(on_path).resolve().parent.parent if on_path else None


def _packages(home: Home) -> Finding:
    name = "the image's packages"
    if not home.python.is_file():
        return Finding(name, "fail", f"{home.python} is missing or leads nowhere", _SETUP)
    failed = _failure(str(home.python), "-c", _IMPORTS)
    return finding(name, f"{home.python} {failed or 'has them'}", _SETUP, is_well=failed is None)


def _archive(home: Home, java: Java | None) -> Finding:
    name, archive, pyspark = "class-data archive", archive_of(home.path), pyspark_of(home.path)
    if not archive.is_file():
        return Finding(name, "warn", f"{archive} is missing, so Spark starts slowly", _SETUP)
    if java is None or pyspark is None:
        return Finding(name, "warn", f"{archive} was not tried: Java 17 or PySpark is missing", _SETUP)
    with tempfile.TemporaryDirectory(prefix="soal-doctor-") as folder:
        log = Path(folder) / "archive.log"
        class_path = ":".join(str(jar) for jar in jars(pyspark, home.path))
        options = (*archive_options(home.path, log), _VERIFY, "-cp", class_path, "-version")
        # A Java that crashes leaves a report, and perhaps a core, in its current directory.
        failed = _failure(str(java.java), *options, directory=folder)
        unused = why_unused(home.path, log)
    if failed is not None:
        return Finding(name, "fail", f"Java {failed} with {archive}, and so would every job", _TRAIN)
    if unused is not None:
        # Without the check, Java would take this one.
        is_spoilt = _SPOILT in unused
        detail = unused + ("; jobs can crash" if is_spoilt else ", so Spark starts slowly")
        return Finding(name, "fail" if is_spoilt else "warn", detail, _TRAIN)
    return Finding(name, "ok", f"{archive}; Java takes it")


def _rie(home: Home) -> Finding:
    name = "Lambda emulator"
    try:
        wanted = read_sums(ROOT / "requirements" / "rie.sha256")[binary_name(platform.machine())]
    except SetupError as error:
        return Finding(name, "fail", str(error), "use an x86_64 or arm64 machine")
    if not home.rie.is_file():
        return Finding(name, "fail", f"{home.rie} is missing", _SETUP)
    if sha256_of(home.rie) != wanted:
        return Finding(name, "fail", "has another checksum", _SETUP)
    failed = _failure(str(home.rie), *_HARMLESS, says=_ENDED)
    detail = f"{home.rie}" if failed is None else f"{home.rie} {failed}"
    return finding(name, detail, f"{_SETUP}, and see that {home.path} is not mounted noexec", is_well=failed is None)


def _failure(*command: str, says: str | None = None, directory: str | None = None) -> str | None:
    """Run a command and return how it failed; None if it ended well, or with the message `says`."""
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"does not answer within {_TIMEOUT_S} s"
    except OSError as error:
        return f"cannot be executed: {error.strerror}"
    if done.returncode < 0:
        return f"is ended by {signal.Signals(-done.returncode).name}"
    ended_well = done.returncode == 0 if says is None else says in done.stderr
    return None if ended_well else f"ends with exit code {done.returncode}: {done.stderr.strip()[-200:]}"
