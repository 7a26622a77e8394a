"""Findings about this machine: the files of set-up, memory and disk, ports, and the S3 that jobs here would use."""

from __future__ import annotations

import os
import platform
import shutil
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
from scripts.doctor.programs import examine_programs
from scripts.image.build import TAG
from scripts.provision.checksums import compare, read_sums
from scripts.provision.jars import LOG_STORE_JAR, OWN_JARS
from scripts.provision.place import ROOT
from soal.doctor.finding import Finding, finding
from soal.doctor.store import examine_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.home import Home
    from soal.target import Target

__all__ = ["examine"]

_SETUP: Final = "run scripts/setup"
_PACKAGES: Final = ("pyspark", "delta-spark", "boto3", "awslambdaric")
_MIB: Final = 1024 * 1024
_MEMORY_MIN_MB: Final = 1500
_DISK_MIN_MB: Final = 1024


def examine(home: Home, java_home: str | None, target: Target | None, bucket: str | None) -> Iterator[Finding]:
    """Examine everything, the cheap checks first. `target` None: there is no S3 endpoint to examine."""
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
    wanted = (3, 11)
    found = platform.python_version()
    yield finding(
        "Python", f"{found}, {sys.executable}", "install Python 3.11 or newer", is_well=sys.version_info >= wanted
    )
    try:
        yield Finding("packages", "ok", ", ".join(f"{name} {version(name)}" for name in _PACKAGES))
    except PackageNotFoundError as error:
        yield Finding("packages", "fail", f"{error.name} is not installed", _SETUP)


def _environment() -> Finding:
    """Examine this shell's variables for the guard and the handler, which `soal local invoke` passes on."""
    given = {name: value for name, value in os.environ.items() if name.startswith(("SW_", "SOAL_"))}
    try:
        read_settings({"SW_CHECKPOINT_BUCKET": "any", **given})
    except InputError as error:
        return Finding("environment", "fail", str(error), f"correct it, or: unset {error.field}")
    return Finding("environment", "ok", ", ".join(sorted(given)) or "nothing is set, so all defaults apply")


def _jars(home: Home) -> Iterator[Finding]:
    difference = compare(home.jars, read_sums(ROOT / "image" / "jars" / "jars.sha256"))
    wrong = [f"{name} is missing" for name in difference.missing]
    wrong += [f"{name} has another checksum" for name in difference.wrong]
    wrong += [f"{name} is not listed" for name in difference.extra if name not in OWN_JARS]
    yield finding("jars", "; ".join(wrong) or f"all listed ones, in {home.jars}", _SETUP, is_well=not wrong)
    log_store = home.jars / LOG_STORE_JAR
    there = log_store.is_file()
    yield finding("log store", f"{log_store}" if there else f"{log_store} is missing", _SETUP, is_well=there)


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
    """Look for the container image, without starting a daemon; only `soal local invoke --docker` needs it."""
    docker = shutil.which("docker")
    if docker is None:
        return Finding("image", "ok", "no docker here; it is needed for --docker only")
    command = [docker, "image", "inspect", "--format", "{{.Id}}", TAG]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return Finding("image", "warn", "docker does not answer", "soal image build starts a daemon of its own")
    if done.returncode != 0:
        return Finding("image", "warn", f"docker has no {TAG}; it is needed for --docker only", "soal image build")
    return Finding("image", "ok", f"{TAG}, {done.stdout.strip()}")


def _loopback() -> Finding:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=3),
        ):
            return Finding("ports", "ok", "a free port on 127.0.0.1 can be used")
    except OSError as error:
        return Finding("ports", "fail", f"127.0.0.1: {error}", "allow connections on the loopback interface")
