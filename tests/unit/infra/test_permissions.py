"""The stack's roles may make each recorded S3 request of job and sweeper, and reach no other place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import StoreError
from safewriter.objects.s3 import S3ObjectStore
from scripts.emulator import EmbeddedS3
from tests.support.empty_log import needs_of_settling
from tests.support.fencing import needs_of_fencing
from tests.support.guarded_s3 import Permissions
from tests.support.roles import CHECKPOINTS, JOB, LAKE, ROLES, SCRIPTS, SWEEPER, kept_needs, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.guarded_s3 import Need
    from tests.support.statement import Statement

ON_S3 = [(role, each) for role, access in ROLES.items() for each in access.statements if "s3:" in each.actions[0]]
# Permissions that the scenario does not need, by the end of their place, and what needs them.
NEEDED_ELSEWHERE = {
    (JOB, "s3:AbortMultipartUpload", "/tables/*"): "S3A gives up the upload of a task that was cancelled",
    (SWEEPER, "s3:GetObject", "/tables/_delta_log/*"): "the log of a table that is the named place itself",
    (SWEEPER, "s3:PutObject", "/tables/_delta_log/*"): "as above",
    (SWEEPER, "s3:GetObject", "/tables/metadata/*"): "an Iceberg table that is the named place itself",
    (SWEEPER, "s3:PutObject", "/tables/metadata/*"): "as above",
    (SWEEPER, "s3:GetObject", "/tables/_CURRENT"): "a snapshot whose prefix is the named place itself",
    (SWEEPER, "s3:PutObject", "/tables/_CURRENT"): "as above",
}


def named(case: tuple[str, Statement]) -> str:
    role, statement = case
    return f"{role[4:].lower()} {statement.actions[0]} {statement.resources[0].rpartition(':')[2]}"


@pytest.mark.parametrize(
    "need", kept_needs(), ids=lambda need: f"{need.role[4:].lower()} {need.action} {need.resource[13:]}"
)
def test_what_is_needed_is_allowed(need: Need) -> None:
    """The role may make every kind of request that handler, guard, Spark and sweeper made in the recorded scenario."""
    assert need.met_by(ROLES[need.role])


@pytest.mark.parametrize("case", ON_S3, ids=named)
def test_no_permission_is_superfluous(case: tuple[str, Statement]) -> None:
    """Without the permission a recorded request is denied, or the list says what else needs it."""
    role, statement = case
    less = ROLES[role].without(statement)

    missed = [need for need in kept_needs() if need.role == role and not need.met_by(less)]

    elsewhere = [
        reason
        for (who, action, end), reason in NEEDED_ELSEWHERE.items()
        if who == role and action == statement.actions[0] and statement.resources[0].endswith(end)
    ]
    assert bool(missed) is not bool(elsewhere)


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
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE, "another"], rules=[Permissions(ROLES).rule()]) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("role", [JOB, SWEEPER])
@pytest.mark.parametrize(
    ("bucket", "act"),
    [
        (LAKE, lambda store: store.put("other/x", b"")),
        (LAKE, lambda store: next(store.list("other/"))),
        (LAKE, lambda store: next(store.list(""))),
        (SCRIPTS, lambda store: store.put("job.py", b"")),
        (CHECKPOINTS, lambda store: next(store.list("checkpoints/"))),
        (CHECKPOINTS, lambda store: store.delete("checkpoints/x.json")),
        ("another", lambda store: store.put("x", b"")),
    ],
)
def test_what_was_not_named_is_refused(
    s3: EmbeddedS3, role: str, bucket: str, act: Callable[[S3ObjectStore], object]
) -> None:
    """Neither role has access to another prefix or bucket, the scripts, or finished documents."""
    store = S3ObjectStore(s3._client(role), bucket)

    with pytest.raises(StoreError, match="not allowed") as caught:
        act(store)

    assert caught.value.denied


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
