"""A block takes its identity, bucket, deadline and turn from arguments, environment or micro-batch, or is refused."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from safewriter.block.block import Block
from safewriter.deadline import Deadline
from safewriter.errors import SettingError, UnsupportedError, UsageError
from safewriter.identity import Run
from safewriter.record.document import CommitPoint
from safewriter.tables.registry import format_of
from safewriter.tables.session import MicroBatch
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.objects import Location

BEGAN_MS = 1_800_000_000_000
BATCH = MicroBatch("7c5b2f0e-0000-4000-8000-000000000000", "12", "start")


@dataclass
class Session:
    """The Spark session as a block uses it before it changes anything."""

    batch: MicroBatch | None = None
    secrets: dict[str, str] = field(default_factory=dict)

    def micro_batch(self) -> MicroBatch | None:
        return self.batch


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_store(location: Location) -> MemoryObjectStore:
        return MemoryObjectStore(World().now, location.bucket)

    monkeypatch.setattr("safewriter.objects.s3.open_store", open_store)
    monkeypatch.setattr("safewriter.deadline.epoch_ms", lambda: BEGAN_MS)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "checkpoints")
    monkeypatch.setenv("SOAL_RUN_KEY", "a run")


def of(monkeypatch: pytest.MonkeyPatch, session: Session | None = None, **more: Any) -> Block:
    asked: list[tuple[str, str]] = []

    def open_session(_: object, table: str) -> Session:
        asked.append((table, "delta"))
        return session or Session()

    monkeypatch.setattr(format_of("delta"), "session", open_session, raising=False)
    given = {
        "format": "delta",
        "step": None,
        "commit_point": "write",
        "checkpoint_bucket": None,
        "warn_before_ms": None,
        "turn": None,
        **more,
    }
    found = Block.of(cast("Any", None), "s3a://lake/table/", **given)
    assert asked == [("s3a://lake/table", given["format"])]
    return found


@pytest.mark.parametrize(
    ("step", "problem"), [(5, "step=5 is no text"), ("x" * 4097, "of 4097 characters is too long")]
)
def test_a_step_is_a_name(monkeypatch: pytest.MonkeyPatch, step: object, problem: str) -> None:
    """The journal, the document and the result all hold the step."""
    with pytest.raises(UsageError, match=problem):
        of(monkeypatch, step=step)


def test_a_block_is_what_arguments_and_environment_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table's name in statements, the write by its canonical name, and a nonce of its own."""
    monkeypatch.setenv("SOAL_JOURNAL", "journal.jsonl")

    found, other = of(monkeypatch, step="a step", commit_point="success"), of(monkeypatch)

    assert found.table == "s3a://lake/table"
    assert (str(found.write.table), found.write.format, found.write.step) == ("s3://lake/table", "delta", "a step")
    assert found.commit_point is CommitPoint.SUCCESS
    assert found.journal == "journal.jsonl"
    assert found.checkpoint_uri == f"s3://checkpoints/checkpoints/{found.write.key}.json"
    assert found.attempt.nonce != other.attempt.nonce


def test_arguments_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket, and how early the watchdog acts."""
    monkeypatch.setenv("SOAL_DEADLINE_EPOCH_MS", str(BEGAN_MS + 600_000))
    monkeypatch.setenv("SOAL_STARTED_EPOCH_MS", str(BEGAN_MS))

    found = of(monkeypatch, checkpoint_bucket="other", warn_before_ms=5_000)

    assert found.checkpoint_uri.startswith("s3://other/")
    assert found.schedule is not None
    assert found.schedule.lead_ms == 5_000


def test_in_a_micro_batch_the_write_is_the_stream_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that drives the stream does not count: a batch that Spark delivers again is the same write."""
    first = of(monkeypatch, Session(BATCH))
    monkeypatch.setenv("SOAL_RUN_KEY", "another run")
    again = of(monkeypatch, Session(BATCH))

    assert first.write.key == again.write.key
    assert first.write.step == "batch 12"
    assert of(monkeypatch, Session(BATCH), step="a step").write.step == "a step, batch 12"
    assert of(monkeypatch, Session(dataclasses.replace(BATCH, batch_id="13"))).write.key != first.write.key
    assert of(monkeypatch).write.run == Run.from_environment({"SOAL_RUN_KEY": "another run"})


@pytest.mark.parametrize(
    ("made_in", "entered_in"), [(None, BATCH), (BATCH, None), (BATCH, dataclasses.replace(BATCH, batch_id="13"))]
)
def test_a_block_that_was_made_in_another_batch_is_refused(
    monkeypatch: pytest.MonkeyPatch, made_in: MicroBatch | None, entered_in: MicroBatch | None
) -> None:
    """It has the name of another write, and would be skipped once that write is committed."""
    session = Session(made_in)
    found = of(monkeypatch, session)
    found.check_surroundings()

    session.batch = entered_in

    with pytest.raises(UsageError, match="made outside the batch"):
        found.check_surroundings()


def test_without_a_deadline_nothing_ends_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off Lambda there is no watchdog, no latest start, and a settler may take its time."""
    found = of(monkeypatch)

    assert (found.schedule, found.latest_start_ms) == (None, None)
    assert found.patience_s(30.0, lambda _: 0) == 30.0
    assert found.recovery.settling.may_go_on()


def test_a_guard_settles_within_its_deadline_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the deadline the process may end at any moment, so the guard begins nothing more."""
    monkeypatch.setenv("SOAL_DEADLINE_EPOCH_MS", str(BEGAN_MS + 600_000))
    monkeypatch.setenv("SOAL_STARTED_EPOCH_MS", str(BEGAN_MS))
    now_ms = BEGAN_MS
    found = of(monkeypatch)
    assert found.schedule is not None
    monkeypatch.setattr(Deadline, "remaining_ms", lambda self: self.at_ms - now_ms)

    assert (found.schedule.lead_ms, found.latest_start_ms) == (30_000, BEGAN_MS + 570_000)
    now_ms = BEGAN_MS + 599_999
    assert found.recovery.settling.may_go_on()
    now_ms = BEGAN_MS + 600_000
    assert not found.recovery.settling.may_go_on()


def test_patience_ends_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the requested time, or the time left before another step needs it; never negative."""
    monkeypatch.setenv("SOAL_DEADLINE_EPOCH_MS", str(BEGAN_MS + 20_000))
    monkeypatch.setenv("SOAL_STARTED_EPOCH_MS", str(BEGAN_MS - 600_000))
    found = of(monkeypatch)
    assert found.schedule is not None
    deadline = dataclasses.replace(found.schedule.deadline, clock=lambda: BEGAN_MS)
    found = dataclasses.replace(found, schedule=dataclasses.replace(found.schedule, deadline=deadline))

    assert found.patience_s(5.0, lambda schedule: schedule.deadline.at_ms) == 5.0
    assert found.patience_s(30.0, lambda schedule: schedule.deadline.at_ms) == 20.0
    assert found.patience_s(30.0, lambda schedule: schedule.deadline.at_ms - 15_000) == 5.0
    assert found.patience_s(30.0, lambda schedule: schedule.deadline.at_ms - 20_001) == 0.0


@pytest.mark.parametrize("audit_log", [True, False])
def test_the_settler_of_a_block_has_what_the_settings_and_the_session_know(
    monkeypatch: pytest.MonkeyPatch, *, audit_log: bool
) -> None:
    """A catalog's secrets are handed on in this process; the audit log follows the settings."""
    monkeypatch.setenv("SW_AUDIT_LOG", str(audit_log).lower())

    found = of(monkeypatch, Session(secrets={"uri": "jdbc:postgresql://db"}))

    assert found.recovery.settling.secrets == {"uri": "jdbc:postgresql://db"}
    assert found.recovery._audit_log is audit_log


def test_what_cannot_be_guarded_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong commit point, a format that is not known, a bucket that is not set."""
    with pytest.raises(UnsupportedError, match="commit_point 'commit' is neither 'write' nor 'success'"):
        of(monkeypatch, commit_point="commit")
    with pytest.raises(UnsupportedError, match="format 'hudi' is not guarded"):
        of(monkeypatch, format="hudi")
    monkeypatch.delenv("SW_CHECKPOINT_BUCKET")
    with pytest.raises(SettingError, match="SW_CHECKPOINT_BUCKET"):
        of(monkeypatch)


def test_a_block_belongs_to_the_turn_of_its_thread_or_to_the_one_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a coordinator it belongs to no turn."""
    own, given = SimpleNamespace(left_s=1.0), SimpleNamespace(left_s=0.0)
    assert of(monkeypatch).turn is None
    assert not of(monkeypatch).has_lost_turn
    monkeypatch.setattr("safewriter.block.block.turn_of_this_thread", lambda _: own)
    assert [of(monkeypatch).turn] == [own]
    assert not of(monkeypatch).has_lost_turn
    assert [of(monkeypatch, turn=given).turn] == [given]
    assert of(monkeypatch, turn=given).has_lost_turn


def test_a_block_that_was_made_outside_its_turn_writes_nothing() -> None:
    """That turn would not fence it."""
    made = SimpleNamespace(is_turn_given=False, batch=None, turn=object(), session=Session())
    with pytest.raises(UsageError, match="outside the turn"):
        Block.check_surroundings(cast("Any", made))
