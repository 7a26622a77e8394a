from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.emulator import EmbeddedS3, Match, Refuse, Reply, Request, Rule
from scripts.soal.doctor import Finding, _clock, examine
from scripts.soal.place import Home
from scripts.soal.target import Target, local_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["checkpoints"], unlistable=["checkpoints"]) as running:
        yield running


@pytest.fixture
def s3(server: EmbeddedS3) -> EmbeddedS3:
    server.reset()
    return server


def look(home: Path, target: Target | None = None, bucket: str | None = "checkpoints") -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(Home(home), None, target, bucket)}


def test_an_empty_home_fails_with_a_remedy_for_each(tmp_path: Path) -> None:
    """Missing jars, log store and emulator are each named, with the command that makes them."""
    found = look(tmp_path)
    for name in ("jars", "log store", "Lambda emulator"):
        assert found[name].status == "fail"
        assert "scripts/setup" in found[name].remedy
    assert found["Python"].status == "ok"
    assert found["ports"].status == "ok"


def test_a_changed_emulator_fails(tmp_path: Path) -> None:
    """A binary with another checksum is not trusted."""
    (tmp_path / "rie").write_bytes(b"something else")
    assert look(tmp_path)["Lambda emulator"].detail == "has another checksum"


def test_a_changed_jar_is_named(tmp_path: Path) -> None:
    """A jar whose checksum differs, and one that nobody listed, are named."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "delta-storage-4.4.0.jar").write_bytes(b"x")
    (tmp_path / "jars" / "more.jar").write_bytes(b"x")
    detail = look(tmp_path)["jars"].detail
    assert "delta-storage-4.4.0.jar has another checksum" in detail
    assert "more.jar is not listed" in detail


def test_no_endpoint_is_a_warning(tmp_path: Path) -> None:
    """Who runs no local S3 is told how, but nothing is broken."""
    found = look(tmp_path)["S3 endpoint"]
    assert found.status == "warn"
    assert "soal local up" in found.remedy


def test_a_good_endpoint_is_well_in_every_respect_and_left_clean(tmp_path: Path, s3: EmbeddedS3) -> None:
    """It answers, the bucket can be written without ListBucket, conditions count, clocks agree, nothing stays."""
    found = look(tmp_path, local_target(s3.endpoint), "checkpoints/prefix")
    for name in ("S3 endpoint", "checkpoint bucket", "conditional writes", "clock"):
        assert found[name].status == "ok", found[name]
    assert s3.keys("checkpoints") == ()


def test_an_endpoint_where_nobody_listens_fails(tmp_path: Path) -> None:
    """Port 9 has no listener; the finding names the endpoint."""
    found = look(tmp_path, local_target("http://127.0.0.1:9"))["S3 endpoint"]
    assert found.status == "fail"
    assert "127.0.0.1:9" in found.detail


def test_a_missing_bucket_fails(tmp_path: Path, s3: EmbeddedS3) -> None:
    """A checkpoint bucket that is not there is found before a job needs it."""
    found = look(tmp_path, local_target(s3.endpoint), "missing")
    assert found["S3 endpoint"].status == "ok"
    assert found["checkpoint bucket"].status == "fail"


def test_a_missing_setting_fails(tmp_path: Path, s3: EmbeddedS3) -> None:
    """Without SW_CHECKPOINT_BUCKET no guarded job can run."""
    found = look(tmp_path, local_target(s3.endpoint), None)["checkpoint bucket"]
    assert "SW_CHECKPOINT_BUCKET" in found.detail
    assert found.status == "fail"


def test_a_store_that_does_not_answer_conditions_with_412_fails(tmp_path: Path, s3: EmbeddedS3) -> None:
    """Such a store loses commits, and must be found before it does."""
    s3.wire.add(Rule(Match(operations={"PutObject"}), Refuse(500), nth=2, times=None))
    found = look(tmp_path, local_target(s3.endpoint))["conditional writes"]
    assert found.status == "fail"
    assert "If-None-Match" in found.detail


def test_a_condition_that_is_ignored_fails(tmp_path: Path, s3: EmbeddedS3) -> None:
    """A second creation that is answered with 200 is the end of all guarantees."""

    def ignoring(request: Request) -> Reply:
        request.environ.pop("HTTP_IF_NONE_MATCH", None)
        return request.apply()

    s3.wire.add(Rule(Match(), ignoring, times=None))
    found = look(tmp_path, local_target(s3.endpoint))["conditional writes"]
    assert found.status == "fail"
    assert "ignored" in found.detail


@pytest.mark.parametrize(("skew_s", "status"), [(0, "ok"), (4.9, "ok"), (5, "warn"), (59, "warn"), (60, "fail")])
def test_a_clock_that_is_wrong_is_told(skew_s: float, status: str) -> None:
    """Deadlines and leases are compared with S3's time."""
    found = _clock(skew_s)
    assert found.status == status
    assert bool(found.remedy) == (status != "ok")
