"""Findings about this machine: set-up's files, programs, memory and disk, ports, and the S3 of local jobs.

The doctor starts each program once, without side effects: a file may exist and still not run.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from handler.input_errors import InputError
from handler.sandbox.sandbox import forbids_execution
from handler.settings import read_settings
from handler.spark.archive import archive_of, archive_options, why_unused
from handler.spark.classpath import jars
from scripts.image.build import TAG
from scripts.provision.jars import LOG_STORE_JAR, OWN_JARS, compare, read_sums, sha256_of
from scripts.provision.java import default_java, java_at
from scripts.provision.place import ROOT
from scripts.provision.rie import binary_name
from soal.console.problem import Failure
from soal.doctor.buckets import examine_store
from soal.doctor.finding import Finding, finding
from soal.home import pyspark_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.provision.java import Java
    from soal.home import Home
    from soal.target import Target

_SETUP: Final = "run scripts/setup"
_IMPORTS: Final = "import awslambdaric, boto3, pyiceberg, pyspark"
_TRAIN: Final = "remove it, and run scripts/setup, which makes it again"
_TIMEOUT_S: Final = 30
# A corrupt byte in an archived class can crash Java; Java checks for it only with this option.
_VERIFY: Final = "-XX:+VerifySharedSpaces"
_SPOILT: Final = "hecksum verification failed"
# The emulator takes unknown options for a program to serve; an unknown log level makes it exit.
_HARMLESS: Final = ("--log-level", "none")
_ENDED: Final = "Failed to set log level"
_PACKAGES: Final = ("pyspark", "delta-spark", "boto3", "awslambdaric")
_MIB: Final = 1024 * 1024
_MEMORY_MIN_MB: Final = 1500
_DISK_MIN_MB: Final = 1024


def examine_programs(home: Home, java_home: str | None) -> Iterator[Finding]:
    """Examine Java, the image's packages, the class-data archive, and the Lambda emulator."""
    folder = _java_home(home, java_home)
    java = None if folder is None else java_at(folder)
    if folder is None:
        yield Finding("Java", "fail", "there is none", _SETUP)
    elif java is None:
        yield Finding("Java", "fail", f"{folder} is not Java 17", f"set JAVA_HOME to a Java 17, or {_SETUP}")
    else:
        yield Finding("Java", "ok", f"{java.version}, {java.home}")
    yield _packages(home)
    yield _archive(home, java)
    yield _rie(home)


def _java_home(home: Home, java_home: str | None) -> Path | None:
    """Return the Java home that the handler would choose."""
    if (home.path / "java" / "bin" / "java").exists():
        return home.path / "java"
    return default_java({**os.environ, "JAVA_HOME": java_home or ""})


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
        # A crashing Java leaves a report, and perhaps a core, in its current directory.
        failed = _failure(str(java.java), *options, directory=folder)
        unused = why_unused(home.path, log)
    if failed is not None:
        return Finding(name, "fail", f"Java {failed} with {archive}, and so would every job", _TRAIN)
    if unused is not None:
        # Java accepts a corrupt archive if _VERIFY is not set.
        is_spoilt = _SPOILT in unused
        detail = unused + ("; jobs can crash" if is_spoilt else ", so Spark starts slowly")
        return Finding(name, "fail" if is_spoilt else "warn", detail, _TRAIN)
    return Finding(name, "ok", f"{archive}; Java takes it")


def _rie(home: Home) -> Finding:
    name = "Lambda emulator"
    try:
        checksum = read_sums(ROOT / "requirements" / "rie.sha256")[binary_name(platform.machine())]
    except Failure as error:
        return Finding(name, "fail", str(error), "use an x86_64 or arm64 machine")
    if not home.rie.is_file():
        return Finding(name, "fail", f"{home.rie} is missing", _SETUP)
    if sha256_of(home.rie) != checksum:
        return Finding(name, "fail", "has another checksum", _SETUP)
    failed = _failure(str(home.rie), *_HARMLESS, says=_ENDED)
    detail = f"{home.rie}" if failed is None else f"{home.rie} {failed}"
    return finding(name, detail, f"{_SETUP}, and see that {home.path} is not mounted noexec", is_well=failed is None)


def _failure(*command: str, says: str | None = None, directory: str | None = None) -> str | None:
    """Run a command and return how it failed; None if it succeeded, or printed the message `says`."""
    try:
        process = subprocess.run(
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
    if process.returncode < 0:
        return f"is ended by {signal.Signals(-process.returncode).name}"
    ended_well = process.returncode == 0 if says is None else says in process.stderr
    return None if ended_well else f"ends with exit code {process.returncode}: {process.stderr.strip()[-200:]}"


def examine(home: Home, java_home: str | None, target: Target | None, bucket: str | None) -> Iterator[Finding]:
    """Examine everything, cheap checks first. `target` None: there is no S3 endpoint to examine."""
    yield from _python()
    yield _environment()
    yield from _jars(home)
    yield from examine_programs(home, java_home)
    yield from _room()
    yield _loopback()
    yield _image()
    if target is None:
        yield Finding("S3 endpoint", "warn", "none runs here and none was given", "soal local up, or --endpoint-url")
        return
    yield from examine_store(target.client(), bucket)


def _python() -> Iterator[Finding]:
    least = (3, 11)
    version_here = platform.python_version()
    yield finding(
        "Python", f"{version_here}, {sys.executable}", "install Python 3.11 or newer", is_well=sys.version_info >= least
    )
    try:
        yield Finding("packages", "ok", ", ".join(f"{name} {version(name)}" for name in _PACKAGES))
    except PackageNotFoundError as error:
        yield Finding("packages", "fail", f"{error.name} is not installed", _SETUP)


def _environment() -> Finding:
    """Examine this shell's SW_ variables, which `soal local invoke` passes on, and its SOAL_ variables."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(("SW_", "SOAL_"))}
    try:
        read_settings({"SW_CHECKPOINT_BUCKET": "any", **variables})
    except InputError as error:
        return Finding("environment", "fail", str(error), f"correct it, or: unset {error.field}")
    return Finding("environment", "ok", ", ".join(sorted(variables)) or "nothing is set, so all defaults apply")


def _jars(home: Home) -> Iterator[Finding]:
    difference = compare(home.jars, read_sums(ROOT / "image" / "jars" / "jars.sha256"))
    wrong = [f"{name} is missing" for name in difference.missing]
    wrong += [f"{name} has another checksum" for name in difference.wrong]
    wrong += [f"{name} is not listed" for name in difference.extra if name not in OWN_JARS]
    yield finding("jars", "; ".join(wrong) or f"all listed ones, in {home.jars}", _SETUP, is_well=not wrong)
    log_store = home.jars / LOG_STORE_JAR
    is_there = log_store.is_file()
    yield finding("log store", f"{log_store}" if is_there else f"{log_store} is missing", _SETUP, is_well=is_there)


def _room() -> Iterator[Finding]:
    memory_mb = psutil.virtual_memory().available // _MIB
    enough = memory_mb >= _MEMORY_MIN_MB
    remedy = "" if enough else f"a job needs about {_MEMORY_MIN_MB} MB; end other programs"
    yield Finding("memory", "ok" if enough else "warn", f"{memory_mb} MB available", remedy)
    folder = Path(tempfile.gettempdir())
    disk_mb = shutil.disk_usage(folder).free // _MIB
    is_roomy = disk_mb >= _DISK_MIN_MB
    detail = f"{disk_mb} MB free in {folder}"
    yield finding(
        "disk", detail, f"jobs work in {folder}; free {_DISK_MIN_MB} MB there, or set TMPDIR", is_well=is_roomy
    )
    is_noexec = forbids_execution(folder)
    detail = (
        f"{folder} is mounted noexec: Java cannot load the native libraries (snappy, zstd, lz4) that it unpacks there"
    )
    remedy = "set TMPDIR to a folder of another file system, or mount this one with exec"
    yield finding(
        "temporary files", detail if is_noexec else f"{folder} lets programs run", remedy, is_well=not is_noexec
    )


def _image() -> Finding:
    """Look for the container image without starting a daemon. Only `soal local invoke --docker` needs it."""
    docker = shutil.which("docker")
    if docker is None:
        return Finding("image", "ok", "no docker here; it is needed for --docker only")
    command = [docker, "image", "inspect", "--format", "{{.Id}}", TAG]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return Finding("image", "warn", "docker does not answer", "soal image build starts a daemon of its own")
    if process.returncode != 0:
        return Finding("image", "warn", f"docker has no {TAG}; it is needed for --docker only", "soal image build")
    return Finding("image", "ok", f"{TAG}, {process.stdout.strip()}")


def _loopback() -> Finding:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=3),
        ):
            return Finding("ports", "ok", "a free port on 127.0.0.1 can be used")
    except OSError as error:
        return Finding("ports", "fail", f"127.0.0.1: {error}", "allow connections on the loopback interface")
