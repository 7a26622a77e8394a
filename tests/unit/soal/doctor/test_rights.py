"""The doctor's list of requests that the roles need equals those seen of handler, guard, Spark and sweeper."""

from __future__ import annotations

import re

import pytest

from safewriter.objects import Location
from soal.doctor.rights import JOB, SWEEPER, Need, RequestKind, requests_of
from tests.support.roles import CHECKPOINTS, LAKE, SCRIPTS, kept_needs
from tests.support.roles import JOB as JOB_KEY
from tests.support.roles import SWEEPER as SWEEPER_KEY

KINDS = {CHECKPOINTS: "checkpoints", SCRIPTS: "scripts", LAKE: "data"}


def seen(role: str) -> set[tuple[str, str, str]]:
    """Return the recorded kinds of requests of a role: action, kind of place, folder."""
    return {
        (need.action, *_place(need.resource, need.prefix if need.action == "s3:ListBucket" else None))
        for need in kept_needs()
        if need.role == role
    }


def _place(resource: str, prefix: str | None) -> tuple[str, str]:
    bucket, _, key = resource.rpartition(":")[2].partition("/")
    kind, key = KINDS[bucket], key if prefix is None else prefix
    if kind == "checkpoints":
        folder = key.partition("/")[0]
        if prefix is None or prefix.endswith("/"):
            return kind, folder
        return kind, f"{folder}/*.json" if prefix.endswith(".json") else f"{folder}/*/*"
    inner = re.search(r"(?:^|/)(_delta_log|metadata|_CURRENT|manifests|runs)(?:/|$)", key) if kind == "data" else None
    whole = {"manifests": "manifests/*_run_id=*/manifest", "runs": "runs/*_run_id=*/run.yaml"}
    return kind, whole.get(inner[1], inner[1]) if inner else ""


@pytest.mark.parametrize(("needs", "role"), [(JOB, JOB_KEY), (SWEEPER, SWEEPER_KEY)])
def test_the_list_is_what_was_seen(needs: tuple[Need, ...], role: str) -> None:
    """The list has exactly the kinds of requests that handler, guard, Spark and sweeper make."""
    assert {(need.action, need.kind, folder) for need in needs for folder in need.folders} == seen(role)


def test_requests_lie_below_their_place() -> None:
    """Requests are for a table, for any table of a folder, or a listing of the bucket with a prefix."""
    needs = (Need("s3:GetObject", "data", ("", "_delta_log")), Need("s3:ListBucket", "data", ("metadata",)))
    found = list(requests_of(needs, [("data", Location("lake", "t/")), ("scripts", Location("code"))]))
    assert found == [
        RequestKind("s3:GetObject", "arn:aws:s3:::lake/t/*"),
        RequestKind("s3:GetObject", "arn:aws:s3:::lake/t/_delta_log/*"),
        RequestKind("s3:ListBucket", "arn:aws:s3:::lake", "t/metadata/"),
    ]
    (key,) = requests_of([Need("s3:ListBucket", "data", ("runs/*.json",))], [("data", Location("lake", "t"))])
    assert (key.prefix, key.probe_prefix) == ("t/runs/*.json", "t/runs/soal-doctor.json")
    *_, log, listing = requests_of(needs, [("data", Location("lake", "*"))], "aws-cn")
    assert (log.pattern, log.resource) == (
        "arn:aws-cn:s3:::lake/*/_delta_log/*",
        "arn:aws-cn:s3:::lake/soal-doctor/_delta_log/soal-doctor",
    )
    assert (listing.prefix, listing.probe_prefix) == ("*/metadata/", "soal-doctor/metadata/")
