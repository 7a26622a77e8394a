"""`soal orphans` reads the actions of one Delta commit or checkpoint, and names a file that it cannot read."""

from __future__ import annotations

import io

import pytest
from arro3.core import Array, DataType, Field, Table, struct_array
from arro3.io import write_parquet

from soal.orphans.log_actions import UnreadableLogError, actions_of


def test_every_line_of_a_commit_is_an_action() -> None:
    """Actions are yielded in file order; an empty line is none."""
    body = b'{"commitInfo":{}}\n\n{"add":{"path":"a"}}\n{"txn":{"appId":"x"}}\n'
    assert list(actions_of("0.json", body)) == [("commitInfo", {}), ("add", {"path": "a"}), ("txn", {"appId": "x"})]


def test_a_row_of_a_checkpoint_is_one_action_and_its_statistics_are_left_out() -> None:
    """A row is one action without statistics; a file keeps its deletion vector, rows of other kinds have none."""
    text = DataType.utf8()
    vector = struct_array(
        [Array(["u", None], type=text), Array(["abc", None], type=text)],
        fields=[Field("storageType", text), Field("pathOrInlineDv", text)],
    )
    add = struct_array(
        [Array(["a", None], type=text), Array(["{}", None], type=text), vector],
        fields=[Field("path", text), Field("stats", text), Field("deletionVector", vector.type)],
    )
    sidecar = struct_array([Array([None, "s"], type=text)], fields=[Field("path", text)])
    written = io.BytesIO()
    write_parquet(Table.from_arrays([add, sidecar], names=["add", "sidecar"]), written)
    found = [(kind, action) for kind, action in actions_of("0.parquet", written.getvalue()) if action["path"]]
    assert found == [
        ("add", {"path": "a", "deletionVector": {"storageType": "u", "pathOrInlineDv": "abc"}}),
        ("sidecar", {"path": "s"}),
    ]


@pytest.mark.parametrize(("key", "body"), [("0.json", b'{"add":'), ("0.json", b"[1]"), ("0.parquet", b"PAR1")])
def test_a_damaged_file_is_named(key: str, body: bytes) -> None:
    """A damaged file is named in the error, whatever its reader raises."""
    with pytest.raises(UnreadableLogError, match=f"its {key} cannot be read"):
        list(actions_of(key, body))


@pytest.mark.parametrize(
    "line",
    [
        '{"add":null}',
        '{"add":[]}',
        '{"add":{}}',
        '{"add":{"path":5}}',
        '{"remove":{"path":""}}',
        '{"cdc":{"path":null}}',
        '{"add":{"path":"a","deletionVector":[1]}}',
        '{"add":{"path":"a","deletionVector":{"storageType":"u"}}}',
        '{"protocol":{"minReaderVersion":"x"}}',
        '{"protocol":{"minReaderVersion":9e999}}',
        '{"protocol":{"readerFeatures":[1,"a"]}}',
        '{"metaData":{"partitionColumns":5}}',
        '{"sidecar":{}}',
        '{"sidecar":{"path":"../../x"}}',
        "[1]",
        "null",
    ],
)
def test_what_delta_does_not_write_makes_the_log_unreadable(line: str) -> None:
    """A malformed action makes the log unreadable, and the error names the log file."""
    with pytest.raises(UnreadableLogError, match=r"its 0\.json cannot be read"):
        list(actions_of("0.json", line.encode()))
