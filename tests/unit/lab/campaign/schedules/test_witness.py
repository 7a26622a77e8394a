"""The fold of the log and of the documents sees each kind of broken promise at once."""

from __future__ import annotations

import json

import pytest

from tests.lab.campaign.schedules.log import LAKE, ROOT, added, body_of, creation, key_of, removed
from tests.lab.campaign.schedules.witness import BUCKET, Witness

KEY = f"sw-{'a' * 32}"
FILES = [f"{KEY}-{epoch}-{'0' * 15}{epoch}-part-00000.parquet" for epoch in (1, 2)]


class Bench:
    """A table with an empty version 0."""

    def __init__(self) -> None:
        self.files = {f"{ROOT}/{name}" for name in FILES}
        self.witness = Witness(self.files.__contains__)
        self.commit(*creation())

    def commit(self, *actions: dict[str, object]) -> None:
        self.witness.changed(LAKE, key_of(self.witness.head + 1), body_of(*actions))

    def document(self, status: str, epoch: int = 1) -> None:
        body = json.dumps({"write_key": KEY, "status": status, "epoch": epoch}).encode()
        self.witness.changed(BUCKET, f"checkpoints/{KEY}.json", body)

    @property
    def kinds(self) -> list[str]:
        return [one.kind for one in self.witness.broken]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_write_that_is_committed_once_breaks_nothing(bench: Bench) -> None:
    """Nor does one that was undone before its verdict."""
    bench.document("in_progress")
    bench.commit(added(FILES[0]))
    bench.document("rolling_back")
    bench.commit(removed(FILES[0]))
    bench.document("rolled_back")
    bench.document("in_progress", 2)
    bench.commit(added(FILES[1]))
    bench.document("committed", 2)
    bench.witness.acknowledge(KEY)
    assert bench.kinds == []


def test_two_attempts_at_a_time_are_doubled_rows(bench: Bench) -> None:
    """Whatever the document says."""
    bench.commit(added(FILES[0]))
    bench.commit(added(FILES[1]))
    assert bench.kinds == ["doubled"]


def test_a_verdict_that_the_table_contradicts_is_wrong(bench: Bench) -> None:
    """In both directions."""
    bench.document("in_progress")
    bench.document("committed")
    assert bench.kinds == ["wrong_verdict"]
    other = Bench()
    other.document("in_progress")
    other.commit(added(FILES[0]))
    other.document("rolled_back")
    assert other.kinds == ["wrong_verdict"]


def test_a_commit_behind_its_rollback_is_a_change(bench: Bench) -> None:
    """Also when a later attempt has claimed the write."""
    bench.document("in_progress")
    bench.document("rolled_back")
    bench.document("in_progress", 2)
    bench.commit(added(FILES[0]))
    assert bench.kinds == ["changed"]


def test_rows_that_go_behind_a_verdict_or_an_answer_are_lost(bench: Bench) -> None:
    """Each of the two is a promise of its own."""
    bench.document("in_progress")
    bench.commit(added(FILES[0]))
    bench.document("committed")
    bench.witness.acknowledge(KEY)
    bench.commit(removed(FILES[0]))
    assert bench.kinds == ["lost", "changed"]


def test_an_answer_without_rows_is_a_loss(bench: Bench) -> None:
    """At the moment of the answer."""
    bench.witness.acknowledge(KEY)
    assert bench.kinds == ["lost"]


def test_a_version_that_is_written_again_or_deleted_is_a_gap(bench: Bench) -> None:
    """As is a file that a version names and that is not there, now or later."""
    bench.witness.changed(LAKE, key_of(0), body_of(*creation()))
    bench.witness.changed(LAKE, key_of(0), None)
    bench.commit(added("nowhere.parquet"))
    bench.commit(added(FILES[0]))
    bench.witness.changed(LAKE, f"{ROOT}/{FILES[0]}", None)
    assert bench.kinds == ["gap"] * 4


def test_a_move_that_the_protocol_does_not_know_is_wrong(bench: Bench) -> None:
    """A settled write is opened by a claim only, and a committed one by none."""
    bench.document("in_progress")
    bench.commit(added(FILES[0]))
    bench.document("committed")
    bench.document("in_progress", 2)
    assert bench.kinds == ["wrong_verdict"]
