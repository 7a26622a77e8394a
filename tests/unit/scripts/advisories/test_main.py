"""The command of the audit fails for an unassessed advisory or an unreachable database, and names the remedy."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from scripts.advisories.__main__ import main
from scripts.advisories.artifacts import Artifact, inventory
from scripts.advisories.osv import Osv
from tests.support.osv import FakeOsv, serve, vulnerability

pytestmark = pytest.mark.slow

JACKSON = "com.fasterxml.jackson.core:jackson-databind"
ROOT = Path(__file__).parents[4]
EMPTY = "assessments = []\n"


def jackson() -> Artifact:
    """Return an artifact of one of the image's jars."""
    held = inventory(ROOT, ROOT / ".soal").artifacts
    return next(one for one in held if one.jar.startswith("jackson-databind"))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("scripts.advisories.__main__.Osv", lambda service: Osv(service, pause_s=0))


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the repository's list by a test's list."""
    path = tmp_path / "advisories.toml"
    path.write_text(EMPTY, encoding="utf-8")
    monkeypatch.setattr("scripts.advisories.__main__._LIST", str(path))
    return path


def test_an_advisory_that_nobody_has_assessed_fails_the_audit(only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names jar, version, advisory and fixed version, and says what to do."""
    version = jackson()
    told = vulnerability("GHSA-zzzz-zzzz-zzzz", JACKSON, "99.1")
    fake = FakeOsv(pages={version.coordinates.purl: [["GHSA-zzzz-zzzz-zzzz"]]}, told={"GHSA-zzzz-zzzz-zzzz": told})
    with serve(fake) as url:
        assert main(["--service", url]) == 1
    said = capsys.readouterr().err
    line = f"NOT ASSESSED: {version.jar}: {version.coordinates}: GHSA-zzzz-zzzz-zzzz (CVE-2026-11111): fixed in 99.1"
    assert line in said
    assert "A parser does not stop" in said
    assert f"write into {only}" in said


def test_an_assessed_advisory_is_told_with_its_reason(only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It does not fail the audit; the report says what to do with rows that match no jar."""
    row = (
        '[[assessments]]\nverdict = "not affected"\nwhy = "nobody parses"\njars = ["jackson-databind"]\n'
        f'advisories = [{{ id = "GHSA-zzzz-zzzz-zzzz", package = "{JACKSON}",'
        ' affected = "vers:maven/<0.1", fixed = "1" }]\n'
    )
    only.write_text(EMPTY.replace("assessments = []\n", row), encoding="utf-8")
    purl = jackson().coordinates.purl
    told = vulnerability("GHSA-zzzz-zzzz-zzzz", JACKSON, "99.1")
    with serve(FakeOsv(pages={purl: [["GHSA-zzzz-zzzz-zzzz"]]}, told={"GHSA-zzzz-zzzz-zzzz": told})) as url:
        assert main(["--service", url]) == 0
    said = capsys.readouterr().err
    assert "not affected: nobody parses" in said
    assert "remove its row" in said
    assert "was asked" in said


def test_a_database_that_cannot_be_reached_is_a_failure_that_helps(
    only: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report names the service, the error, what was checked without it, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert main(["--service", f"http://127.0.0.1:{port}"]) == os.EX_TEMPFAIL
    said = capsys.readouterr().err
    assert f"failed: the vulnerability database at http://127.0.0.1:{port} cannot be reached: POST " in said
    assert "Connection refused" in said
    assert f"against {only}, which is not complete" in said
    assert "To do: run scripts/audit where" in said


def test_without_the_jars_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a fresh clone, without jars, the audit sends no request."""
    monkeypatch.setattr("scripts.advisories.__main__.inventory", lambda root, _home: inventory(root, tmp_path))
    assert main([]) == 1
    assert "run scripts/setup" in capsys.readouterr().err


def test_what_the_list_knows_counts_where_the_database_cannot_be_reached(
    only: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A listed advisory that was assessed for another jar fails the audit even without the database."""
    row = f'{{ id = "GHSA-zzzz-zzzz-zzzz", package = "{JACKSON}", affected = "vers:maven/<99.1", fixed = "99.1" }}'
    head = '[[assessments]]\nverdict = "not affected"\nwhy = "nobody parses"\njars = ["other"]\n'
    only.write_text(f"{head}advisories = [{row}]\n", encoding="utf-8")
    with serve(FakeOsv(faults=[503] * 9)) as url:
        assert main(["--service", url]) == 1
    found = jackson()
    said = capsys.readouterr().err
    assert f"NOT ASSESSED: {found.jar}: {found.coordinates}: GHSA-zzzz-zzzz-zzzz: fixed in 99.1" in said
    assert "status 503" in said
