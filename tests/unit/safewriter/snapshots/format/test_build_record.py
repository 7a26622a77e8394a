"""The record of a snapshot's build, as bytes: valid JSON and YAML with shardyfusion's fields, under its key."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from safewriter.snapshots.format.build_record import BuildDocument, record_key

MOMENT = datetime(2026, 11, 23, 6, 30, 5, 42, tzinfo=UTC)
DOCUMENT = BuildDocument(
    run_id="r",
    status="running",
    started_at=MOMENT,
    updated_at=MOMENT,
    lease_expires_at=MOMENT + timedelta(minutes=10),
    s3_prefix="s3://lake/p",
    shard_prefix="shards",
    db_path_template="db={db_id:05d}",
)
FIELDS = {
    "db_path_template": "db={db_id:05d}",
    "error_message": None,
    "error_type": None,
    "format_version": 1,
    "lease_expires_at": "2026-11-23T06:40:05.000042Z",
    "manifest_ref": None,
    "run_id": "r",
    "s3_prefix": "s3://lake/p",
    "shard_prefix": "shards",
    "started_at": "2026-11-23T06:30:05.000042Z",
    "status": "running",
    "updated_at": "2026-11-23T06:30:05.000042Z",
    "writer_type": "spark",
}


@pytest.mark.parametrize("parse", [json.loads, yaml.safe_load])
def test_a_record_is_json_and_yaml(parse: Any) -> None:
    """It has the fields of shardyfusion's record, in order."""
    found = parse(DOCUMENT.encode())
    assert (found, list(found)) == (FIELDS, sorted(FIELDS))


@pytest.mark.parametrize(
    "message", ["tab\t'quote' \"double\" # {x: y}\nline", "\U0001f600 é", "\x00\x7f\x85\x9f\u2028\ufeff\uffff \\u0041"]
)
def test_every_message_is_the_same_in_both(message: str) -> None:
    """That includes characters that YAML forbids or reads differently."""
    body = replace(DOCUMENT, status="failed", error_message=message).encode()
    assert json.loads(body)["error_message"] == yaml.safe_load(body)["error_message"] == message


def test_of_a_long_message_the_beginning_is_kept() -> None:
    """Spark's errors are long; lone surrogates are replaced."""
    body = replace(DOCUMENT, error_message="\ud800" + "x" * 10_000).encode()
    assert json.loads(body)["error_message"] == "?" + "x" * 3999


def test_a_record_lies_where_others_look_for_it() -> None:
    """Its key has the time, the run and the token."""
    assert record_key("runs", "r", MOMENT, "abc") == "runs/2026-11-23T06:30:05.000042Z_run_id=r_abc/run.yaml"
