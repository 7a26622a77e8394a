from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects import Location, StoreError
from safewriter.record import journal
from safewriter.record.document import CommitPoint, Status
from safewriter.record.journal import Journal
from safewriter.settings import Settings
from safewriter.settle import supervisor
from safewriter.settle.supervisor import OpenWrites, Supervision, WriteReport
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.world import TABLE, Job, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUDGET_MS = 10_000


class Child:
    """What the supervisor sees of its child: a journal, and the two stores behind its own network."""

    def __init__(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, world: World, network: Network | None = None
    ) -> None:
        self.path = path
        self.journal = Journal(path)
        self.world = world
        self.network = network or Network()
        bucket, lake = self.network.store(world.bucket), self.network.store(world.lake)
        monkeypatch.setattr(supervisor, "open_store", lambda location: {"checkpoints": bucket}[location.bucket])
        monkeypatch.setattr(supervisor, "table_store", lambda uri: {TABLE: lake}[uri])

    def opened(self, job: Job, **more: Any) -> None:
        """Write the line that the guard writes before anything else."""
        fields = {
            "writeKey": self.world.key,
            "nonce": job.attempt.nonce,
            "table": TABLE,
            "format": "delta",
            "step": "a step",
            "commitPoint": self.world.commit_point.value,
            "checkpoint": self.world.checkpoints.uri(self.world.key),
        }
        journal.append(self.path, "write_opened", **(fields | more))

    def passed(self, job: Job) -> None:
        """Write the line that the gate writes before it sends a commit."""
        journal.append(self.path, "commit_passed", nonce=job.attempt.nonce)

    def closed(self, job: Job) -> None:
        journal.append(self.path, "write_closed", nonce=job.attempt.nonce)

    def supervision(self, *, audit_log: bool = True) -> Supervision:
        settings = Settings(Location("checkpoints"), audit_log=audit_log)
        return Supervision(self.journal, settings, clock=self.world.clock)

    def settle(self, budget_ms: int = BUDGET_MS) -> WriteReport:
        (report,) = self.supervision().settle(budget_ms=budget_ms)
        return report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal lies."""
    return tmp_path / "journal"


def child(path: Path, monkeypatch: pytest.MonkeyPatch, world: World | None = None) -> tuple[Child, Job]:
    """Start a child that has opened a block and claimed it."""
    found = Child(path, monkeypatch, world or World())
    job = found.world.job().begin()
    found.opened(job)
    return found, job


def test_a_child_without_writes_has_no_reports(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No journal, or one without a block, is no request to any store."""
    found = Child(path, monkeypatch, World())

    assert found.supervision().settle(budget_ms=BUDGET_MS) == ()
    journal.append(path, "python_started")
    assert found.supervision().settle(budget_ms=BUDGET_MS) == ()
    assert found.network.sent == []


def test_a_commit_that_landed_before_the_kill_is_reported_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version, rows and bytes come from the table."""
    found, job = child(path, monkeypatch)
    found.passed(job)
    job.land()

    report = found.settle()

    assert report == WriteReport(
        table=TABLE,
        format="delta",
        step="a step",
        status=Status.COMMITTED,
        version=2,
        rows=20,
        bytes=200,
        reason="killed after the commit had landed",
        undo_refused=None,
        checkpoint=found.world.checkpoints.uri(found.world.key),
        run_id="run-of-0000000000000001",
    )
    check(found.world)


def test_with_commit_point_success_a_kill_undoes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not declared done is taken back."""
    found, job = child(path, monkeypatch, World(CommitPoint.SUCCESS))
    found.passed(job)
    job.land()

    report = found.settle()

    assert (report.status, report.reason) == ("rolled_back", "killed: version 2 was undone")
    check(found.world)


def test_a_refused_undo_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are there, and the report says why they stay."""
    world = World(CommitPoint.SUCCESS, properties={"delta.appendOnly": "true"})
    found, job = child(path, monkeypatch, world)
    found.passed(job)
    job.land()

    report = found.settle()

    assert (report.status, report.undo_refused) == ("committed", "the table is append-only")


@pytest.mark.parametrize("passed", [True, False])
def test_only_a_commit_that_may_have_been_sent_needs_a_fence(
    path: Path, monkeypatch: pytest.MonkeyPatch, passed: object
) -> None:
    """The gate writes its line before it sends; without the line the table is left as it is."""
    found, job = child(path, monkeypatch)
    if passed:
        found.passed(job)

    report = found.settle()

    assert report.status == "rolled_back"
    assert found.world.log.head == (2 if passed else 1)
    check(found.world)


def test_the_line_of_another_attempt_is_no_line_of_ours(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt has sent, or has not sent, its own commit."""
    found, _ = child(path, monkeypatch)
    journal.append(path, "commit_passed", nonce="another")

    assert found.settle().status == "rolled_back"
    assert found.world.log.head == 1


def test_a_commit_is_known_although_the_job_has_deleted_its_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document on S3 is the truth, and its name was read before."""
    found, job = child(path, monkeypatch)
    found.passed(job)
    job.land()
    supervision = found.supervision()
    path.unlink()

    (report,) = supervision.settle(budget_ms=BUDGET_MS)

    assert (report.status, report.version) == ("committed", 2)
    assert supervision.doubt() is None
    check(found.world)


def _truncate(path: Path) -> None:
    path.open("wb").close()


def _replace(path: Path) -> None:
    path.unlink()
    path.touch()


@pytest.mark.parametrize("damage", [_truncate, _replace])
def test_a_journal_that_was_emptied_or_replaced_does_not_hide_a_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    """What was read before is settled, with a fence, since the line of a commit may be lost; and there may be more."""
    found, job = child(path, monkeypatch)
    supervision = found.supervision()
    supervision.renew_leases()
    damage(path)
    job.land()

    (report,) = supervision.settle(budget_ms=BUDGET_MS)

    assert (report.status, report.version) == ("committed", 2)
    assert "journal" in (supervision.doubt() or "")
    check(found.world)


def test_a_line_of_a_stranger_names_no_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its fields are, the guard's own are settled."""
    found, _ = child(path, monkeypatch)
    journal.append(path, "write_opened", nonce=["a"], writeKey={})
    journal.append(path, "commit_passed", nonce=["a"])
    journal.append(path, "write_closed", nonce=["a"])

    assert found.settle().status == "rolled_back"


@pytest.mark.parametrize("torn", [b'{"event":"to', b"\x00\x00\n"])
def test_a_damaged_journal_is_not_believed_to_be_silent(
    path: Path, monkeypatch: pytest.MonkeyPatch, torn: bytes
) -> None:
    """A line of the gate may be lost in it: the table is fenced."""
    found, job = child(path, monkeypatch)
    with path.open("ab") as file:
        file.write(torn)
    found.passed(job)
    job.prepare()

    report = found.settle()

    assert report.status == "rolled_back"
    assert not job.rebase()
    check(found.world)


def test_an_attempt_that_never_claimed_is_rolled_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It died between its journal line and its document."""
    found = Child(path, monkeypatch, World())
    found.opened(found.world.job())

    report = found.settle()

    assert (report.status, report.reason) == ("rolled_back", "the attempt ended before it had claimed the write")
    assert found.network.mutations == 0


def test_a_document_that_cannot_be_read_is_not_taken_for_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing permission looks like a missing object; where a commit was sent there was a document."""
    found, job = child(path, monkeypatch)
    found.passed(job)
    job.land()
    found.world.bucket.delete(f"checkpoints/{found.world.key}.json")

    report = found.settle()

    assert report.status == "unknown"
    assert "cannot be read" in (report.reason or "")


def test_a_document_that_is_gone_tells_nothing_if_an_earlier_block_has_sent_a_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child's second try at the write has sent none; its first may have landed."""
    world = World()
    found, first = child(path, monkeypatch, world)
    found.passed(first)
    first.land()
    found.opened(world.job())
    world.bucket.delete(f"checkpoints/{world.key}.json")

    report = found.settle()
    assert report.status == "unknown"
    assert "cannot be read" in (report.reason or "")


def test_a_document_that_goes_while_it_is_settled_is_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was there a moment ago, and open."""
    world = World()

    def expire(number: int) -> None:
        if number > 1:
            world.bucket.delete(f"checkpoints/{world.key}.json")

    network = Network(before=expire)
    found = Child(path, monkeypatch, world, network)
    job = world.job().begin()
    found.opened(job)
    found.passed(job)

    report = found.settle()
    assert (report.status, report.reason) == (
        "unknown",
        f"{world.checkpoints.uri(world.key)} has gone while it was settled",
    )


def test_a_write_that_another_attempt_owns_is_not_touched(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A duplicate delivery lives; our child never got the write."""
    world = World()
    owner = world.job().begin()
    found = Child(path, monkeypatch, world)
    found.opened(world.job())
    before = world.bucket.contents(), world.lake.contents()

    report = found.settle()

    assert (report.status, report.reason) == (
        "in_progress",
        f"another attempt ({owner.attempt.nonce}) owns the write",
    )
    assert (world.bucket.contents(), world.lake.contents()) == before


def test_a_write_that_another_attempt_has_settled_is_reported_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document says committed, whoever did it."""
    world = World()
    assert world.job().run()
    found = Child(path, monkeypatch, world)
    found.opened(world.job())

    assert found.settle().status == "committed"


def test_every_attempt_of_the_child_is_dead(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that was tried twice is reported once, and settled also if the first try owns it."""
    found, job = child(path, monkeypatch)
    found.passed(job)
    job.land()
    found.closed(job)
    found.opened(found.world.job())

    report = found.settle()

    assert (report.status, report.version) == ("committed", 2)


def test_blocks_that_are_settled_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal document is one GET."""
    found, job = child(path, monkeypatch)
    job.land()
    assert job.success()

    assert found.settle().status == "committed"
    assert [sent.verb for sent in found.network.sent] == ["get"]


def test_each_write_has_a_report_in_the_order_of_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write that cannot be settled does not hide the others."""
    found, job = child(path, monkeypatch)
    found.opened(job, writeKey="sw-other", nonce="other", step="second")
    found.world.bucket.put("checkpoints/sw-other.json", b"damaged")

    first, second = found.supervision().settle(budget_ms=BUDGET_MS)

    assert (first.status, second.status, second.step) == ("rolled_back", "unknown", "second")


@pytest.mark.parametrize("body", [b"damaged", b'{"schema_version": 2}'])
def test_an_unreadable_document_is_unknown(path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    """It is left as it is, and the reason says what is wrong."""
    found, job = child(path, monkeypatch)
    found.passed(job)
    found.world.bucket.put(f"checkpoints/{found.world.key}.json", body)

    report = found.settle()

    assert (report.status, report.version) == ("unknown", None)
    assert report.reason
    assert found.world.bucket.contents()[f"checkpoints/{found.world.key}.json"] == body


def test_a_store_that_fails_is_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is no verdict."""
    world = World()
    found = Child(path, monkeypatch, world, Network(Fault.REFUSE, 1, and_all_after=True))
    job = world.job().begin()
    found.opened(job)
    found.passed(job)

    assert found.settle().status == "unknown"
    assert world.document.status is Status.IN_PROGRESS


def test_a_log_that_cannot_tell_is_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap or a damaged version pages somebody, and never ends the supervisor."""
    for harm in ("gap", "damage"):
        found, job = child(path, monkeypatch)
        found.passed(job)
        found.world.append_foreign()
        found.world.append_foreign()
        if harm == "gap":
            found.world.hide(key_of(2))
        else:
            found.world.lake.put(key_of(2), b"{")

        assert found.settle().status == "unknown"
        path.unlink()


def test_without_a_budget_nothing_is_guessed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of time is unknown, and the document stays open."""
    found, job = child(path, monkeypatch)
    found.passed(job)
    job.land()

    report = found.settle(budget_ms=0)

    assert report.status == "unknown"
    assert found.world.document.status is Status.IN_PROGRESS
    assert found.network.mutations == 0


def test_leases_are_renewed_for_open_blocks_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that has ended is nobody's to wait for."""
    found = Child(path, monkeypatch, World())
    first, second = found.world.job(), found.world.job()
    found.opened(first)
    found.closed(first)
    found.opened(second)

    found.supervision().renew_leases()

    leases = [key for key in found.world.bucket.contents() if key.startswith("leases/")]
    assert leases == [f"leases/{found.world.key}/{second.attempt.nonce}"]


def test_a_lease_that_cannot_be_renewed_disturbs_nobody(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is tried all the same, and nothing is raised."""
    found = Child(path, monkeypatch, World(), Network(Fault.REFUSE, 1))
    first, second = found.world.job(), found.world.job()
    found.opened(first)
    found.opened(second)

    found.supervision().renew_leases()

    assert found.network.fired
    assert [key for key in found.world.bucket.contents() if key.startswith("leases/")] == [
        f"leases/{found.world.key}/{second.attempt.nonce}"
    ]


def test_leases_without_a_journal_are_no_work(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child has not begun yet."""
    found = Child(path, monkeypatch, World())

    found.supervision().renew_leases()

    assert found.network.sent == []


def test_the_audit_log_is_as_the_settings_say(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off is off for the supervisor too."""
    found, _ = child(path, monkeypatch)

    found.supervision(audit_log=False).settle(budget_ms=BUDGET_MS)

    assert not [key for key in found.world.bucket.contents() if key.startswith("audit/")]


def test_a_denied_read_is_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while reading is not the absence of a document."""
    found, _ = child(path, monkeypatch)

    def denied(_: str) -> None:
        raise StoreError("GET: denied", denied=True)

    monkeypatch.setattr(found.world.bucket, "get", denied)

    assert found.settle().status == "unknown"


def test_a_table_is_named_while_its_block_is_open(tmp_path: Path) -> None:
    """Two tables at once are two names, two blocks on one table are one; a stranger's line is none."""
    path = tmp_path / "journal.jsonl"
    writes = OpenWrites(Journal(path))
    assert writes.tables() == ()
    journal.append(path, "write_opened", nonce="0")
    for nonce, table in (("1", "s3://a/x"), ("2", "s3://b/y"), ("3", "s3://a/x")):
        more = {"writeKey": "k", "format": "delta", "step": None, "checkpoint": "s3://c/k"}
        journal.append(path, "write_opened", nonce=nonce, table=table, **more)
    assert writes.tables() == ("s3://a/x", "s3://b/y")
    journal.append(path, "write_closed", nonce="1")
    journal.append(path, "write_closed", nonce="2")
    assert writes.tables() == ("s3://a/x",)
    journal.append(path, "write_closed", nonce="3")
    assert writes.tables() == ()


def test_a_torn_line_may_have_been_a_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write without a document is unknown then, never rolled back."""
    world = World()
    one = Child(path, monkeypatch, world)
    one.opened(world.job())
    with path.open("ab") as file:
        file.write(b"torn\n")
    assert one.settle().status == "unknown"


@pytest.mark.parametrize("more", [{"table": 5}, {"step": 5}])
def test_a_line_of_other_types_names_no_write(
    path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    """The guard has not written it."""
    world = World()
    one = Child(path, monkeypatch, world)
    one.opened(world.job(), **more)
    assert one.supervision().settle(budget_ms=BUDGET_MS) == ()
