"""The campaign derives from a recorded write which request waits for which, and lists the writes to record."""

from __future__ import annotations

from tests.lab.campaign.replay.recording import SUBJECTS, Step, _ordered, subjects


def step(key_class: str) -> Step:
    return Step(operation="PutObject", bucket="lake", key="k", key_class=key_class, condition=None, body=b"")


def test_a_request_waits_for_those_that_had_ended_before_it_began() -> None:
    """Two that overlap wait for none of each other."""
    seen = [(30, 40, step("checkpoint")), (0, 10, step("marker")), (5, 12, step("lease")), (12, 20, step("note"))]
    assert [(one.key_class, one.after) for one in _ordered(seen)] == [
        ("marker", 0),
        ("lease", 0),
        ("note", 0b1),
        ("checkpoint", 0b111),
    ]


def test_data_files_wait_for_no_other_data_file() -> None:
    """Tasks know nothing of each other, however they fell in the recording."""
    seen = [(0, 1, step("marker")), (2, 3, step("data")), (4, 5, step("data")), (6, 7, step("delta_log/commit"))]
    assert [one.after for one in _ordered(seen)] == [0, 0b1, 0b1, 0b111]


def test_each_guarded_write_is_a_subject() -> None:
    """On Delta also with the commit point `success`, where a write can be undone; words select."""
    assert len(SUBJECTS) == len({one.name for one in SUBJECTS}) == 9
    assert [one.name for one in subjects("iceberg -merge")] == ["iceberg-append-write", "iceberg-overwrite-write"]
