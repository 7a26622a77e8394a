"""The doctor finds set-up's missing or changed files, a wrong variable, and missing S3 or image on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.doctor.machine import examine
from soal.home import Home

if TYPE_CHECKING:
    from pathlib import Path

    from soal.doctor.finding import Finding


def look(home: Path) -> dict[str, Finding]:
    found = {finding.name: finding for finding in examine(Home(home), None, None, None)}
    assert all(finding.remedy for finding in found.values() if finding.status != "ok"), found
    return found


def test_an_empty_home_fails_with_a_remedy_for_each(tmp_path: Path) -> None:
    """Missing jars, log store and emulator are each named, with the command that makes them."""
    found = look(tmp_path)
    for name in ("jars", "log store", "Lambda emulator"):
        assert found[name].status == "fail"
        assert "scripts/setup" in found[name].remedy
    assert found["Python"].status == "ok"
    assert found["ports"].status == "ok"


def test_a_changed_jar_is_named(tmp_path: Path) -> None:
    """A jar with another checksum and an unlisted jar are named."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "delta-storage-4.4.0.jar").write_bytes(b"x")
    (tmp_path / "jars" / "more.jar").write_bytes(b"x")
    detail = look(tmp_path)["jars"].detail
    assert "delta-storage-4.4.0.jar has another checksum" in detail
    assert "more.jar is not listed" in detail


def test_no_endpoint_is_a_warning(tmp_path: Path) -> None:
    """Without a local S3 the finding is a warning that says how to start one."""
    found = look(tmp_path)["S3 endpoint"]
    assert found.status == "warn"
    assert "soal local up" in found.remedy


def test_a_wrong_variable_of_the_shell_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong variable in the shell is a failure that names the variable."""
    assert look(tmp_path)["environment"].status == "ok"
    monkeypatch.setenv("SW_WARN_BEFORE_MS", "soon")
    found = look(tmp_path)["environment"]
    assert (found.status, found.remedy) == ("fail", "correct it, or: unset SW_WARN_BEFORE_MS")


@pytest.mark.parametrize(
    ("answer", "status", "detail"),
    [("echo sha256:1", "ok", "sha256:1"), ("exit 1", "warn", "has no soal"), (None, "ok", "no docker")],
)
def test_the_image_is_looked_for_where_docker_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None, status: str, detail: str
) -> None:
    """A missing image is no failure, since only --docker needs it; no daemon is started for the check."""
    if answer is not None:
        docker = tmp_path / "docker"
        docker.write_text(f"#!/bin/sh\n{answer}\n")
        docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = look(tmp_path)["image"]
    assert (found.status, detail in found.detail) == (status, True)


def test_a_folder_for_temporary_files_that_forbids_execution_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding names TMPDIR's folder, where Spark unpacks its native libraries."""
    assert look(tmp_path)["temporary files"].status == "ok"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("scripts.doctor.machine.forbids_execution", lambda folder: folder == tmp_path)
    found = look(tmp_path)["temporary files"]
    assert (found.status, f"{tmp_path} is mounted noexec" in found.detail) == ("fail", True), found
