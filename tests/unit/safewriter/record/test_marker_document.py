"""The document that an operator makes from a marker records an attempt that never claimed and left nothing."""

from __future__ import annotations

from safewriter.record.document import AttemptRecord, Status
from safewriter.record.marker import Marker
from tests.unit.safewriter.world import World


def test_the_attempt_of_a_marker_s_document_has_ended_and_left_nothing() -> None:
    """It never claimed: its epoch is the first, it says nothing of the table, and it has left no files."""
    world = World()
    job = world.job()
    marker = Marker.of(world.write, job.attempt, world.commit_point, started_ms=1, deadline_ms=5)

    made = marker.document(Status.ROLLED_BACK, "never claimed", 7, "by hand")

    assert made.attempts == (
        AttemptRecord(
            epoch=1,
            nonce=job.attempt.nonce,
            run_id=world.write.run.id,
            request_id=world.write.run.request_id,
            prefix=marker.prefix,
            deadline_ms=5,
            started_ms=1,
            version_before=-1,
            settled_ms=7,
            settled_by="by hand",
            cleaned=True,
            claimed=False,
        ),
    )
    assert (made.epoch, made.owner, made.status) == (1, job.attempt.nonce, Status.ROLLED_BACK)
    assert made.reason == "by hand: never claimed"
