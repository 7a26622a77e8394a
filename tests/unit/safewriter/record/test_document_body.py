"""A document as bytes: written, read again, or refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.errors import UnreadableCheckpointError
from safewriter.identity import Attempt
from safewriter.record.document import (
    ATTEMPTS_MAX,
    AttemptRecord,
    Checkpoint,
    CommitPoint,
    Status,
)
from tests.unit.safewriter.record.samples import KEY, NONCE, attempt, document, named

texts = st.text(max_size=8)
records = st.builds(
    AttemptRecord,
    epoch=st.integers(1, 9),
    nonce=st.just(NONCE),
    run_id=texts,
    request_id=st.none() | texts,
    prefix=st.just(""),
    deadline_ms=st.none() | st.integers(0, 10**14),
    started_ms=st.integers(0, 10**14),
    version_before=st.integers(-1, 9),
    table_id=st.none() | texts,
    features=st.lists(texts).map(tuple),
    properties=st.dictionaries(texts, texts),
    commit_version=st.none() | st.integers(0, 2**63 - 1),
    rows=st.none() | st.integers(0, 2**63 - 1),
    cleaned=st.booleans(),
).map(lambda record: dataclasses.replace(record, prefix=Attempt(NONCE).file_prefix(KEY, record.epoch)))
documents = st.builds(
    Checkpoint,
    run_key=texts,
    write_key=st.just(KEY),
    fingerprint=texts,
    table=texts,
    format=texts,
    step=st.none() | texts,
    commit_point=st.sampled_from(CommitPoint),
    status=st.sampled_from(Status),
    epoch=st.integers(1, 9),
    owner=texts,
    attempts=st.lists(records, min_size=1, max_size=3).map(tuple),
    reason=st.none() | texts,
    undo_refused=st.none() | texts,
).map(named)


@given(documents)
def test_a_document_is_read_as_it_was_written(before: Checkpoint) -> None:
    """Only the nonce of the write differs."""
    after = Checkpoint.from_bytes(before.to_bytes())

    assert dataclasses.replace(after, nonce=before.nonce) == before


def test_two_writings_of_one_document_differ() -> None:
    """Equal bytes would have equal ETags, and a lost race would look like a won one."""
    assert document().to_bytes() != document().to_bytes()


def test_an_absent_table_is_written_as_a_word() -> None:
    """The paper's fields stand at the top, for people."""
    found = json.loads(document(attempts=(attempt(version_before=-1),)).to_bytes())

    assert (found["version_before"], found["attempts"][0]["version_before"]) == ("absent", "absent")
    assert (found["schema_version"], found["status"], found["run_id"]) == (1, "in_progress", "run-id")


def test_a_field_of_a_later_minor_change_is_ignored() -> None:
    """A document with a field more, of the same version, is still read."""
    body = json.loads(document().to_bytes()) | {"colour": "blue"}
    body["attempts"][0]["colour"] = "red"

    assert Checkpoint.from_bytes(json.dumps(body).encode()).attempt.nonce == NONCE


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_an_unknown_schema_version_is_refused(version: object) -> None:
    """A document of another version is not interpreted, and the message names it."""
    body = json.loads(document().to_bytes()) | {"schema_version": version}

    with pytest.raises(UnreadableCheckpointError, match=f"schema version {version!r}"):
        Checkpoint.from_bytes(json.dumps(body).encode())


@pytest.mark.parametrize("name", ["table", "reason", "step"])
def test_a_text_that_no_name_or_reason_has_is_refused(name: str) -> None:
    """Settlers and commands keep and show the texts of thousands of documents."""
    longest: dict[str, Any] = {name: "x" * 8192}
    long: dict[str, Any] = {name: "x" * 8193}
    assert Checkpoint.from_bytes(document(**longest).to_bytes()).write_key
    with pytest.raises(UnreadableCheckpointError, match=f"nothing was written, since .*{name} has 8,193 letters"):
        document(**long).to_bytes()


def test_an_unknown_version_is_told_by_its_beginning() -> None:
    """Whoever wrote the document chose it, and settlers repeat the message."""
    body = json.loads(document().to_bytes()) | {"schema_version": "9" * 5000}

    with pytest.raises(UnreadableCheckpointError) as raised:
        Checkpoint.from_bytes(json.dumps(body).encode())

    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        document().to_bytes()[:-20],
        document().to_bytes().replace(b'"in_progress"', b'"in_doubt"'),
        document().to_bytes().replace(b'"write"', b'"read"'),
        document().to_bytes().replace(b'"owner"', b'"master"'),
        document().to_bytes().replace(f'"nonce": "{NONCE}"'.encode(), f'"once": "{NONCE}"'.encode()),
        document().to_bytes().replace(b'"version_before": 4', b'"version_before": "none"'),
    ],
)
def test_a_damaged_body_is_refused(body: bytes) -> None:
    """Whatever is wrong with it, an incomplete document is refused."""
    with pytest.raises(UnreadableCheckpointError):
        Checkpoint.from_bytes(body)


@pytest.mark.parametrize(
    ("epoch", "nonce", "prefix"),
    [
        (1, NONCE, ""),
        (1, NONCE, "part-"),
        (1, NONCE, f"{KEY[:15]}-2-{NONCE}-"),
        (1, NONCE, f"sw-222222222222-1-{NONCE}-"),
        (1, NONCE, f"{KEY[:15]}-1-{'b' * 16}-"),
        (12345678, "abcd", f"{KEY}-12345678-abcd-"),
        (0, NONCE, f"{KEY[:15]}-0-{NONCE}-"),
        (1, "", f"{KEY[:15]}-1--"),
    ],
)
def test_a_prefix_that_is_not_the_attempt_s_own_is_damage(epoch: int, nonce: str, prefix: str) -> None:
    """A settler deletes files by it, so whoever writes a document would choose which."""
    body = json.loads(document().to_bytes()) | {"epoch": epoch, "owner": nonce}
    body["attempts"][0] |= {"epoch": epoch, "nonce": nonce, "prefix": prefix}

    with pytest.raises(UnreadableCheckpointError, match="is not the prefix"):
        Checkpoint.from_bytes(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("name", "value"), [("table", "s3://lake/other"), ("run_key", "other"), ("step", "other"), ("write_key", "part-0")]
)
def test_a_write_key_that_is_not_that_of_the_names_beside_it_is_damage(name: str, value: str) -> None:
    """A settler would look for the write's files in another table, which does not name them, and delete them."""
    body = json.loads(document().to_bytes()) | {name: value}

    with pytest.raises(UnreadableCheckpointError, match="is not the key of a write"):
        Checkpoint.from_bytes(json.dumps(body).encode())


@pytest.mark.parametrize("number", [0, ATTEMPTS_MAX + 1])
def test_a_document_of_no_attempt_or_of_more_than_any_write_has_is_refused(number: int) -> None:
    """A settler looks for each of them in the table."""
    body = json.loads(document().to_bytes())
    whole, body["attempts"] = body["attempts"] * ATTEMPTS_MAX, body["attempts"] * number

    with pytest.raises(UnreadableCheckpointError, match=f"{number} attempts, not 1 to {ATTEMPTS_MAX}"):
        Checkpoint.from_bytes(json.dumps(body).encode())
    assert len(Checkpoint.from_bytes(json.dumps(body | {"attempts": whole}).encode()).attempts) == ATTEMPTS_MAX


def test_a_catalog_is_written_down_where_there_is_one() -> None:
    """A table that lies at a path has none."""
    found = document(attempts=(attempt(), attempt(catalog={"type": "rest"})))
    written = json.loads(found.to_bytes())

    assert ["catalog" in one for one in written["attempts"]] == [False, True]
    assert [one.catalog for one in Checkpoint.from_bytes(found.to_bytes()).attempts] == [{}, {"type": "rest"}]


@pytest.mark.parametrize("deliveries", [None, []])
def test_a_document_without_deliveries_is_read(deliveries: list[str] | None) -> None:
    """An older version wrote it, before deliveries were recorded."""
    written = json.loads(document().to_bytes()) | {"deliveries": deliveries}

    assert Checkpoint.from_bytes(json.dumps(written).encode()).deliveries == ()
    del written["deliveries"]
    assert Checkpoint.from_bytes(json.dumps(written).encode()).deliveries == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_key", ["list"]),
        ("write_key", None),
        ("epoch", "1"),
        ("started_ms", "yesterday"),
        ("started_ms", 1e999),
        ("started_ms", 10**18),
        ("rows", True),
        ("commit_version", 2**63),
        ("version_before", 1e999),
    ],
)
def test_a_field_of_another_type_is_damage(name: str, value: object) -> None:
    """A list of documents shows the other ones, in the order of their times."""
    found = json.loads(document().to_bytes())
    (found if name in ("run_key", "write_key", "epoch") else found["attempts"][-1])[name] = value
    with pytest.raises(UnreadableCheckpointError, match=r"not a checkpoint document"):
        Checkpoint.from_bytes(json.dumps(found).encode())


@pytest.mark.parametrize(("name", "value"), [("version_before", 2**64), ("rows", 2**70), ("deadline_ms", 10**18)])
def test_a_document_that_nobody_could_read_is_not_written(name: str, value: Any) -> None:
    """The earlier document stays readable, so a settler can continue from it."""
    with pytest.raises(UnreadableCheckpointError, match=f"{KEY}: nothing was written, .*{name}|64 bits"):
        document(attempts=(dataclasses.replace(attempt(), **{name: value}),)).to_bytes()
