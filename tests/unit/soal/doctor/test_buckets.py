"""The doctor examines an S3 endpoint: checkpoint bucket, conditional writes, clock; each fault is a failure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from soal.doctor.buckets import _clock, _open, examine_store
from soal.target import local_target
from soal.testing.s3 import EmbeddedS3, Match, Refuse, Reply, Request, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.doctor.finding import Finding

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["checkpoints"], unlistable=["checkpoints"]) as running:
        yield running


@pytest.fixture
def s3(server: EmbeddedS3) -> EmbeddedS3:
    server.reset()
    return server


def look(endpoint: str, bucket: str | None = "checkpoints") -> dict[str, Finding]:
    return {finding.name: finding for finding in examine_store(local_target(endpoint).client(), bucket)}


def test_a_good_endpoint_is_well_in_every_respect_and_left_clean(s3: EmbeddedS3) -> None:
    """A good endpoint answers, is writable without ListBucket, honours conditions, has the right time, stays clean."""
    found = look(s3.endpoint, "checkpoints/prefix")
    for name in ("S3 endpoint", "checkpoint bucket", "conditional writes", "clock"):
        assert found[name].status == "ok", found[name]
    assert s3.keys("checkpoints") == ()


def test_old_writes_behind_young_ones_are_counted(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 lists a thousand at once, by their keys; beyond the bound the doctor does not say that there are none."""
    s3.fill("checkpoints", {f"open/{number:04}/n": b"" for number in range(1001)})
    hour = timedelta(hours=1)
    assert _open(s3.observer(), "checkpoints", "open/", hour).status == "ok"
    monkeypatch.setattr("soal.doctor.buckets._LISTED_MAX", 1001)
    found = _open(s3.observer(), "checkpoints", "open/", hour)
    assert (found.status, found.detail.split()[0]) == ("warn", "1001")
    found = _open(s3.observer(), "checkpoints", "open/", timedelta(seconds=-5))
    assert found.detail.startswith("1001 writes of dead runs")


def test_an_endpoint_where_nobody_listens_fails() -> None:
    """An endpoint without a listener (port 9) is a failure that names it."""
    found = look("http://127.0.0.1:9")["S3 endpoint"]
    assert found.status == "fail"
    assert "127.0.0.1:9" in found.detail


def test_a_missing_bucket_fails(s3: EmbeddedS3) -> None:
    """A missing checkpoint bucket is a failure, found before a job needs it."""
    found = look(s3.endpoint, "missing")
    assert found["S3 endpoint"].status == "ok"
    assert found["checkpoint bucket"].status == "fail"


def test_a_missing_setting_fails(s3: EmbeddedS3) -> None:
    """A missing SW_CHECKPOINT_BUCKET is a failure, since no guarded job can run without it."""
    found = look(s3.endpoint, None)["checkpoint bucket"]
    assert "SW_CHECKPOINT_BUCKET" in found.detail
    assert found.status == "fail"


def test_a_store_that_does_not_answer_conditions_with_412_fails(s3: EmbeddedS3) -> None:
    """A store that does not answer conditions with 412 is a failure: it would lose commits."""
    s3.wire.add(Rule(Match(operations={"PutObject"}), Refuse(500), nth=2, times=None))
    found = look(s3.endpoint)["conditional writes"]
    assert found.status == "fail"
    assert "If-None-Match" in found.detail


def test_a_condition_that_is_ignored_fails(s3: EmbeddedS3) -> None:
    """A store that answers a second creation with 200 is a failure: nothing would be guaranteed."""

    def ignoring(request: Request) -> Reply:
        request.environ.pop("HTTP_IF_NONE_MATCH", None)
        return request.apply()

    s3.wire.add(Rule(Match(), ignoring, times=None))
    found = look(s3.endpoint)["conditional writes"]
    assert found.status == "fail"
    assert "ignored" in found.detail


@pytest.mark.parametrize(("skew_s", "status"), [(0, "ok"), (4.9, "ok"), (5, "warn"), (59, "warn"), (60, "fail")])
def test_a_clock_that_is_wrong_is_told(skew_s: float, status: str) -> None:
    """A wrong clock is reported: deadlines and leases are compared with S3's time."""
    found = _clock(skew_s)
    assert found.status == status
    assert bool(found.remedy) == (status != "ok")
