"""The stack's roles may make each recorded S3 request of job and sweeper, and reach no other place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import StoreError
from safewriter.objects.s3 import S3ObjectStore
from soal.testing.s3 import EmbeddedS3
from tests.support.empty_log import needs_of_settling
from tests.support.fencing import needs_of_fencing
from tests.support.guarded_s3 import Permissions
from tests.support.roles import CHECKPOINTS, JOB, LAKE, ROLES, SWEEPER, kept_needs, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.slow
def test_what_an_empty_log_s_settler_needs_is_kept_with_the_rest() -> None:
    """Only there a settler puts and tags a tombstone and reads a creation's note; the Spark scenario has neither."""
    assert set(kinds(needs_of_settling())) <= set(kept_needs())


@pytest.mark.slow
def test_what_a_fence_needs_is_kept_with_the_rest() -> None:
    """If the catalog is not a REST server, the settler writes the metadata file itself; the scenario has a server."""
    assert set(kinds(needs_of_fencing())) <= set(kept_needs())


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, LAKE], rules=[Permissions(ROLES).rule()]) as server:
        yield server


@pytest.mark.parametrize(
    ("role", "bucket", "keys"),
    [
        (JOB, LAKE, ["tables/t/missing"]),
        (JOB, CHECKPOINTS, ["checkpoints/x.json", "leases/x/1", "notes/x/1", "runs/x.json", "cancels/x/1"]),
        (JOB, CHECKPOINTS, ["locks/x.json"]),
        (SWEEPER, CHECKPOINTS, ["checkpoints/x.json", "open/x/1", "leases/x/1", "notes/x/1"]),
    ],
)
def test_who_may_read_a_key_is_told_that_it_is_missing(s3: EmbeddedS3, role: str, bucket: str, keys: list[str]) -> None:
    """S3 answers 404, which is a witness, not 403, which is none."""
    store = S3ObjectStore(s3._client(role), bucket)

    assert [store.get(key) for key in keys] == [None] * len(keys)


def test_where_a_key_may_not_be_read_its_absence_is_not_told(s3: EmbeddedS3) -> None:
    """Only the sweeper reads markers: the job cannot distinguish an existing one from a missing one."""
    with pytest.raises(StoreError, match="denied, or not there"):
        S3ObjectStore(s3._client(JOB), CHECKPOINTS).get("open/x/1")
