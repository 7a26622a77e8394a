"""The sweeper's function as Lambda calls it, on an S3 that returns 403 for a missing key without ListBucket."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from handler.functions import sweeper
from safewriter.deadline import epoch_ms
from safewriter.errors import SettingError
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects import StoreError
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.record.marker import Marker
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "sweep-checkpoints"
SCHEMA = {
    "schemaVersion",
    "seen",
    "committed",
    "rolledBack",
    "cleaned",
    "unclean",
    "alive",
    "unclaimed",
    "failed",
    "unreadable",
    "left",
    "oldestOpenMs",
    "problems",
}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[BUCKET, "lake"]) as found:
        yield found


@pytest.fixture
def checkpoints(server: EmbeddedS3, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Checkpoints:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    prefix = request.node.name
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", f"{BUCKET}/{prefix}")
    return Checkpoints(S3ObjectStore(server.observer(), BUCKET, prefix))


def announce(checkpoints: Checkpoints, run: str, deadline_ms: int) -> Marker:
    """Put a marker, like an attempt that dies right after it."""
    write = Write(Run(run, "run-id"), canonical_table("s3://lake/t"), "delta", None)
    marker = Marker.of(write, Attempt.draw(), CommitPoint.WRITE, started_ms=0, deadline_ms=deadline_ms)
    checkpoints.mark(marker)
    return marker


def claim(checkpoints: Checkpoints, marker: Marker) -> None:
    """Create the open document of an attempt, which dies right after that."""
    settled = marker.document(Status.ROLLED_BACK, "", 0, "nobody")
    claimed = dataclasses.replace(settled.attempt, settled_ms=None, settled_by=None, cleaned=False, claimed=True)
    opened = dataclasses.replace(settled, status=Status.IN_PROGRESS, attempts=(claimed,), reason=None)
    assert checkpoints.create(opened) is not None


def invoke(remaining_ms: int = 60_000) -> dict[str, Any]:
    context = SimpleNamespace(
        function_name="sweeper",
        memory_limit_in_mb=512,
        invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:sweeper",
        aws_request_id="request",
        get_remaining_time_in_millis=lambda: remaining_ms,
    )
    answer = sweeper.lambda_handler({}, context)
    assert isinstance(answer, dict)
    return answer


def test_a_sweep_answers_with_what_it_has_done(checkpoints: Checkpoints, capsys: pytest.CaptureFixture[str]) -> None:
    """It reports each kind of write, as JSON and as metrics; the second sweep finds the dead one gone."""
    dead = announce(checkpoints, "dead", deadline_ms=epoch_ms() - 3_600_000)
    claim(checkpoints, dead)
    announce(checkpoints, "unclaimed", deadline_ms=epoch_ms() - 3_600_000)
    announce(checkpoints, "alive", deadline_ms=epoch_ms() + 3_600_000)
    later = announce(checkpoints, "later", deadline_ms=0)
    checkpoints.store.put(f"checkpoints/{later.write_key}.json", b'{"schema_version": 99}')

    answer = json.loads(json.dumps(invoke()))

    assert set(answer) == SCHEMA
    numbers = {name: value for name, value in answer.items() if value and isinstance(value, int)}
    assert numbers.pop("oldestOpenMs") > 0
    assert numbers == {"schemaVersion": 1, "seen": 4, "rolledBack": 1, "unclaimed": 1, "alive": 1, "unreadable": 1}
    assert [problem["writeKey"] for problem in answer["problems"]] == [later.write_key]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    counted = {name: [line[name] for line in lines if name in line] for name in ("SweptRolledBack", "SweepUnreadable")}
    assert counted == {"SweptRolledBack": [[1.0]], "SweepUnreadable": [[1.0], [0.0]]}  # problems are emitted at once
    stored = checkpoints.read(dead.write_key)
    assert stored is not None
    assert stored.document.status is Status.ROLLED_BACK
    assert invoke()["seen"] == 3


def test_without_time_nothing_is_begun(checkpoints: Checkpoints) -> None:
    """The answer counts the rest, and gives its age."""
    announce(checkpoints, "dead", deadline_ms=0)
    answer = invoke(remaining_ms=0)
    assert (answer["seen"], answer["left"]) == (1, 1)
    assert answer["oldestOpenMs"] is not None


def test_a_bucket_that_may_not_be_listed_fails_the_function(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alarm on the function's errors notices it; an empty result would hide it."""
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "no-such-bucket")
    with pytest.raises(StoreError, match="no-such-bucket"):
        invoke()
    monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    with pytest.raises(SettingError, match="SW_CHECKPOINT_BUCKET"):
        invoke()
    assert list(checkpoints.marked()) == []
