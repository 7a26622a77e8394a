"""Findings about the local set-up: each with what was seen and, if it is not well, what to do about it."""

from __future__ import annotations

import platform
import shutil
import socket
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import psutil
from botocore.exceptions import BotoCoreError, ClientError

from handler.archive import archive_of
from scripts.provision.checksums import compare, read_sums, sha256_of
from scripts.provision.jars import LOG_STORE_JAR
from scripts.provision.java import java_at
from scripts.provision.report import SetupError
from scripts.provision.rie import binary_name
from scripts.soal.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client

    from scripts.soal.place import Home
    from scripts.soal.target import Target

__all__ = ["Finding", "examine"]

_SETUP: Final = "run scripts/setup"
_PACKAGES: Final = ("pyspark", "delta-spark", "boto3", "awslambdaric")
_MIB: Final = 1024 * 1024
_MEMORY_MIN_MB: Final = 1500
_DISK_MIN_MB: Final = 1024
_SKEW_WARN_S: Final = 5
_SKEW_FAIL_S: Final = 60
_PRECONDITION_FAILED: Final = 412


@dataclass(frozen=True, slots=True)
class Finding:
    """One look at one thing. Only `fail` makes the set-up unfit; `warn` may be what somebody wants."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


def examine(home: Home, java_home: str | None, target: Target | None, bucket: str | None) -> Iterator[Finding]:
    """Look at everything, the cheap things first. `target` None: there is no S3 endpoint to look at."""
    yield from _python()
    yield _java(home, java_home)
    yield from _jars(home)
    yield _archive(home)
    yield _rie(home)
    yield from _room()
    yield _loopback()
    if target is None:
        yield Finding("S3 endpoint", "warn", "none runs here and none was given", "soal local up, or --endpoint-url")
        return
    yield from _s3(target, bucket)


def _python() -> Iterator[Finding]:
    wanted = (3, 11)
    found = platform.python_version()
    yield _finding("Python", sys.version_info >= wanted, f"{found}, {sys.executable}", "install Python 3.11 or newer")
    try:
        yield Finding("packages", "ok", ", ".join(f"{name} {version(name)}" for name in _PACKAGES))
    except PackageNotFoundError as error:
        yield Finding("packages", "fail", f"{error.name} is not installed", _SETUP)


def _java(home: Home, java_home: str | None) -> Finding:
    """Look where the handler does, in its order."""
    on_path = shutil.which("java")
    candidates = (
        home.path / "java" if (home.path / "java" / "bin" / "java").exists() else None,
        Path(java_home) if java_home else None,
        Path(on_path).resolve().parent.parent if on_path else None,
    )
    first = next((candidate for candidate in candidates if candidate is not None), None)
    if first is None:
        return Finding("Java", "fail", "there is none", _SETUP)
    java = java_at(first)
    if java is None:
        return Finding("Java", "fail", f"{first} is not Java 17", f"set JAVA_HOME to a Java 17, or {_SETUP}")
    return Finding("Java", "ok", f"{java.version}, {java.home}")


def _jars(home: Home) -> Iterator[Finding]:
    difference = compare(home.jars, read_sums(ROOT / "image" / "jars" / "jars.sha256"))
    wrong = [f"{name} is missing" for name in difference.missing]
    wrong += [f"{name} has another checksum" for name in difference.wrong]
    wrong += [f"{name} is not listed" for name in difference.extra if name != LOG_STORE_JAR]
    yield _finding("jars", not wrong, "; ".join(wrong) or f"all listed ones, in {home.jars}", _SETUP)
    log_store = home.jars / LOG_STORE_JAR
    there = log_store.is_file()
    yield _finding("log store", there, f"{log_store}" if there else f"{log_store} is missing", _SETUP)


def _archive(home: Home) -> Finding:
    archive = archive_of(home.path)
    if not archive.is_file():
        return Finding("class-data archive", "warn", f"{archive} is missing, so Spark starts slowly", _SETUP)
    return Finding("class-data archive", "ok", f"{archive}")


def _rie(home: Home) -> Finding:
    try:
        wanted = read_sums(ROOT / "requirements" / "rie.sha256")[binary_name(platform.machine())]
    except SetupError as error:
        return Finding("Lambda emulator", "fail", str(error), "use an x86_64 or arm64 machine")
    if not home.rie.is_file():
        return Finding("Lambda emulator", "fail", f"{home.rie} is missing", _SETUP)
    is_right = sha256_of(home.rie) == wanted
    return _finding("Lambda emulator", is_right, f"{home.rie}" if is_right else "has another checksum", _SETUP)


def _room() -> Iterator[Finding]:
    memory_mb = psutil.virtual_memory().available // _MIB
    enough = memory_mb >= _MEMORY_MIN_MB
    remedy = "" if enough else f"a job needs about {_MEMORY_MIN_MB} MB; end other programs"
    yield Finding("memory", "ok" if enough else "warn", f"{memory_mb} MB available", remedy)
    folder = tempfile.gettempdir()
    disk_mb = shutil.disk_usage(folder).free // _MIB
    is_roomy = disk_mb >= _DISK_MIN_MB
    detail = f"{disk_mb} MB free in {folder}"
    yield _finding("disk", is_roomy, detail, f"jobs work in {folder}; free {_DISK_MIN_MB} MB there, or set TMPDIR")


def _loopback() -> Finding:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=3),
        ):
            return Finding("ports", "ok", "a free port on 127.0.0.1 can be used")
    except OSError as error:
        return Finding("ports", "fail", f"127.0.0.1: {error}", "allow connections on the loopback interface")


def _s3(target: Target, bucket: str | None) -> Iterator[Finding]:
    client = target.client()
    if bucket is None:
        yield Finding(
            "checkpoint bucket", "fail", "SW_CHECKPOINT_BUCKET is not set", "set it to bucket or bucket/prefix"
        )
        return
    name, _, prefix = bucket.removeprefix("s3://").partition("/")
    key = f"{prefix.strip('/')}/doctor/{uuid.uuid4().hex}".lstrip("/")
    before = time.time()
    try:
        answer = client.put_object(Bucket=name, Key=key, Body=b"1", IfNoneMatch="*")
    except ClientError as error:
        yield Finding("S3 endpoint", "ok", f"{target.endpoint} answers")
        remedy = "create it, or allow GetObject, PutObject and DeleteObject there"
        yield Finding("checkpoint bucket", "fail", f"{name}: {error}", remedy)
        return
    except BotoCoreError as error:
        yield Finding("S3 endpoint", "fail", f"{target.endpoint}: {error}", "start it, or correct --endpoint-url")
        return
    after = time.time()
    yield Finding("S3 endpoint", "ok", f"{target.endpoint} answers in {(after - before) * 1000:.0f} ms")
    yield Finding("checkpoint bucket", "ok", f"{bucket} can be written")
    try:
        yield _conditional(client, name, key)
    finally:
        client.delete_object(Bucket=name, Key=key)
    served = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
    # The header has whole seconds: a perfect clock is up to one ahead of it.
    yield _clock(max(0.0, served - after, before - served - 1))


def _conditional(client: S3Client, bucket: str, key: str) -> Finding:
    """Try what every commit relies on: a second creation and a change of another version must both be refused."""
    tries: tuple[tuple[str, Callable[[], object]], ...] = (
        ("If-None-Match: *", lambda: client.put_object(Bucket=bucket, Key=key, Body=b"2", IfNoneMatch="*")),
        ("If-Match", lambda: client.put_object(Bucket=bucket, Key=key, Body=b"2", IfMatch='"another"')),
    )
    for name, attempt in tries:
        try:
            attempt()
        except ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            if status == _PRECONDITION_FAILED:
                continue
            return Finding("conditional writes", "fail", f"{name}: {error}", "use a store that answers it with 412")
        return Finding("conditional writes", "fail", f"{name} is ignored: commits could be lost", "use another store")
    return Finding("conditional writes", "ok", "If-None-Match and If-Match are honoured")


def _clock(skew_s: float) -> Finding:
    detail = f"{skew_s:.0f} s apart from the store's"
    if skew_s < _SKEW_WARN_S:
        return Finding("clock", "ok", detail)
    status: Literal["warn", "fail"] = "warn" if skew_s < _SKEW_FAIL_S else "fail"
    return Finding("clock", status, detail, "synchronise the clock of this machine (NTP)")


def _finding(name: str, is_well: object, detail: str, remedy: str) -> Finding:
    return Finding(name, "ok", detail) if is_well else Finding(name, "fail", detail, remedy)
