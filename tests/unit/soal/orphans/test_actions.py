from __future__ import annotations

import io

import pytest
from arro3.core import Array, DataType, Field, Table, struct_array
from arro3.io import write_parquet

from soal.orphans.log_actions import UnreadableLogError, actions_of


def test_every_line_of_a_commit_is_an_action() -> None:
    """The order is that of the file, and an empty line is no action."""
    body = b'{"commitInfo":{}}\n\n{"add":{"path":"a"}}\n{"txn":{"appId":"x"}}\n'
    assert list(actions_of("0.json", body)) == [("commitInfo", {}), ("add", {"path": "a"}), ("txn", {"appId": "x"})]


def test_a_row_of_a_checkpoint_is_one_action_and_its_statistics_are_left_out() -> None:
    """A deletion vector belongs to its file; rows of other kinds have none."""
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
    """Whatever the reader of its format makes of it."""
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
    """No file is an orphan for a log that says something else; the problem names the file of the log."""
    with pytest.raises(UnreadableLogError, match=r"its 0\.json cannot be read"):
        list(actions_of("0.json", line.encode()))
