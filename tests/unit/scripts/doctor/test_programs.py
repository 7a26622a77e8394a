"""The doctor really starts each program, as set-up has made it and as an accident may leave it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handler.settings import read_settings
from handler.spark.archive import archive_of
from handler.spark.installation import find_java
from scripts.doctor.machine import examine_programs
from scripts.provision.jars import sha256_of
from soal.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.doctor.finding import Finding

pytestmark = pytest.mark.slow

MADE = Home.of()


def look(home: Path, java_home: Path | None) -> dict[str, Finding]:
    found = {one.name: one for one in examine_programs(Home(home), None if java_home is None else str(java_home))}
    assert all(finding.remedy for finding in found.values() if finding.status != "ok"), found
    return found


@pytest.fixture(scope="module")
def java() -> Path:
    """The Java that the handler would use."""
    settings = read_settings({"SW_CHECKPOINT_BUCKET": "any"})
    return find_java(settings.soal_home, settings.java_home).resolve().parent.parent


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Set-up's files, with a copy of the archive: Java takes it only with its own jars."""
    if not archive_of(MADE.path).is_file():
        pytest.skip("no class-data archive here: scripts/setup --without-archive")
    for name in ("jars", "unsigned", "closures", "python"):
        (tmp_path / name).symlink_to(MADE.path / name)
    shutil.copy(archive_of(MADE.path), tmp_path)
    return tmp_path


def test_what_set_up_has_made_runs(java: Path) -> None:
    """Java takes the archive, and the emulator starts, after set-up."""
    if not archive_of(MADE.path).is_file():
        pytest.skip("no class-data archive here: scripts/setup --without-archive")
    found = look(MADE.path, java)
    assert [finding.status for finding in found.values()] == ["ok"] * 4, found


@pytest.mark.parametrize(
    ("leads_to", "detail"),
    [("/no/such/python", "leads nowhere"), ("/bin/false", "ends with exit code 1")],
    ids=["an updated system", "no Python"],
)
def test_a_python_of_the_function_that_does_not_start_is_found(tmp_path: Path, leads_to: str, detail: str) -> None:
    """A Python that does not start, or cannot import the packages, is a failure."""
    python = Home(tmp_path).python
    python.parent.mkdir(parents=True)
    python.symlink_to(leads_to)
    found = look(tmp_path, None)["the image's packages"]
    assert (found.status, detail in found.detail) == ("fail", True), found


def _changed(at: float) -> Callable[[Path], None]:
    """Change a byte, as a bad disk or download does; `at` is its relative position in the file."""

    def change(archive: Path) -> None:
        with archive.open("r+b") as file:
            file.seek(int(archive.stat().st_size * at))
            byte = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([byte[0] ^ 0xFF]))

    return change


def _halved(archive: Path) -> None:
    with archive.open("r+b") as file:
        file.truncate(archive.stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "status", "detail"),
    [
        (_halved, "fail", "is ended by SIG"),
        (lambda archive: archive.write_bytes(b""), "fail", "is ended by SIG"),
        (_changed(0.5), "fail", "Checksum verification failed"),
        (_changed(0.99), "fail", "Checksum verification failed"),
        (lambda archive: archive.write_bytes(b"x" * 10_000), "warn", "bad magic number"),
        (lambda archive: archive.with_name("unsigned").unlink(), "warn", "shared class paths mismatch"),
    ],
    ids=["half", "empty", "byte in the middle", "byte at the end", "no archive", "other jars"],
)
def test_an_archive_that_java_does_not_take_is_found(
    home: Path,
    java: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], object],
    status: str,
    detail: str,
) -> None:
    """An archive that can crash a job is a failure; one that Java merely ignores is a warning."""
    assert look(home, java)["class-data archive"].status == "ok"
    damage(archive_of(home))
    monkeypatch.chdir(tmp_path)
    found = look(home, java)["class-data archive"]
    assert not [*tmp_path.glob("hs_err*"), *tmp_path.glob("core*")]
    assert (found.status, detail in found.detail) == (status, True), found


def test_without_java_the_archive_is_not_tried(tmp_path: Path) -> None:
    """Without Java neither Java nor the archive is reported as ok."""
    archive_of(tmp_path).write_bytes(b"x")
    found = look(tmp_path, tmp_path)
    assert (found["Java"].status, found["class-data archive"].status) == ("fail", "warn")


def test_a_changed_emulator_is_not_even_started(tmp_path: Path) -> None:
    """An emulator with another checksum is not started."""
    program = tmp_path / "rie"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    assert look(tmp_path, None)["Lambda emulator"].detail == "has another checksum"
    assert not (tmp_path / "started").exists()


def _for_another_machine(program: Path) -> None:
    """Write another architecture into the ELF header.

    https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
    """
    with program.open("r+b") as file:
        file.seek(18)
        file.write(b"\x16\x00")


@pytest.mark.parametrize(
    ("damage", "detail"),
    [
        (lambda program: program.chmod(0o644), "cannot be executed: Permission denied"),
        (_for_another_machine, "cannot be executed: Exec format error"),
        (_halved, "is ended by SIG"),
        (lambda program: program.write_text("#!/bin/sh\nexit 3\n"), "ends with exit code 3"),
        (lambda program: program.write_text("#!/bin/sh\nexec tail -f /dev/null\n"), "does not answer within 1 s"),
    ],
    ids=["no permission", "another machine", "half", "exit code", "silent"],
)
def test_an_emulator_that_cannot_run_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], detail: str
) -> None:
    """Permission, architecture, and whether it answers are checked even if the checksum is right."""
    program = Path(shutil.copy(MADE.rie, tmp_path))
    program.chmod(0o755)
    damage(program)
    sums = dict.fromkeys(("aws-lambda-rie-x86_64", "aws-lambda-rie-arm64"), sha256_of(program))
    monkeypatch.setattr("scripts.doctor.machine.read_sums", lambda _path: sums)
    if "answer" in detail:
        monkeypatch.setattr("scripts.doctor.machine._TIMEOUT_S", 1)
    found = look(tmp_path, None)["Lambda emulator"]
    assert (found.status, detail in found.detail) == ("fail", True), found
