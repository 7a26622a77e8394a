"""A killed write that was to create its table: the S3 requests of the settler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause, Recovery
from soal.testing.s3 import EmbeddedS3
from tests.support.guarded_s3 import Permissions
from tests.support.roles import CHECKPOINTS, JOB, LAKE, ROLES, SWEEPER
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.support.guarded_s3 import Need

__all__ = ["needs_of_settling"]


def needs_of_settling() -> list[Need]:
    """Settle such writes as either role, without and with a creation note; return the needs of the requests.

    A sweep more than a day later removes the dead attempt's lease.
    """
    permissions = Permissions(ROLES)
    for role in (JOB, SWEEPER):
        for has_note in (False, True):
            with EmbeddedS3(buckets=[CHECKPOINTS, LAKE], rules=[permissions.rule()]) as s3:
                _settle(s3, role, has_note=has_note)
    assert permissions.denied == []
    return permissions.needs


def _settle(s3: EmbeddedS3, role: str, *, has_note: bool) -> None:
    world = World(existing=False)
    job = world.job().begin()
    assert not has_note or job.note()
    for key, body in world.bucket.contents().items():
        s3.observer().put_object(Bucket=CHECKPOINTS, Key=key, Body=body)
    s3.observer().put_object(Bucket=CHECKPOINTS, Key=f"leases/{world.key}/{job.attempt.nonce}", Body=b"alive")
    client = s3._client(role)
    checkpoints = Checkpoints(S3ObjectStore(client, CHECKPOINTS))
    recovery = Recovery(
        checkpoints,
        lambda _: S3ObjectStore(client, LAKE, "tables/t"),
        clock=epoch_ms,
    )

    settled = recovery.settle(world.key, Cause.SWEEPER)

    assert settled is not None
    assert settled.document.status is Status.ROLLED_BACK
    if role == SWEEPER:
        checkpoints.forget_leases(epoch_ms() + 2 * 86_400_000, lambda: True)
        assert s3.keys(CHECKPOINTS, "leases/") == ()
