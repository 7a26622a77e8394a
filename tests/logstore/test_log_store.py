"""The log store writes and lists the files of a Delta log and of a stream's checkpoint as Delta and Spark expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from soal.testing.s3.rules import Refuse
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from tests.logstore.conftest import Bucket

COMMIT: Final = "_delta_log/00000000000000000007.json"
A, B, C = ('{"a":1}', '{"b":1}', '{"c":1}')
PUT: Final = "PutObject If-None-Match: *"
NOTED: Final = 'v1\n{"nextBatchWatermarkMs":0}'  # the same for every batch of every query without a watermark


@pytest.mark.parametrize("key", [COMMIT, "_delta_log/_staged.json"])
def test_a_file_of_the_log_is_created_or_was_there(lake: Bucket, key: str) -> None:
    """The slower of two writers gets the exception on which Delta rebases, and writes nothing."""
    assert lake.ask("write", key, lines=[A, B], overwrite=False) == {"done": True}
    error = lake.ask("write", key, lines=[C], overwrite=False)["error"]
    assert error[0].startswith("java.nio.file.FileAlreadyExistsException: ")
    assert lake.get(key) == f"{A}\n{B}\n"
    assert {one for one in lake.requests() if one.startswith("Put")} == {PUT}


def test_a_commit_passes_the_gate_of_its_table(lake: Bucket) -> None:
    """Under any name of the table; the log's other files and other tables pass no gate."""
    write = ['{"commitInfo":{"operation":"WRITE"}}']
    lake.store.ask("guard", table=f"s3://{lake.bucket}/{lake.folder}/table")
    try:
        error = lake.ask("write", f"table/{COMMIT}", lines=write, overwrite=False)["error"]
        for key in (f"other/{COMMIT}", "table/_delta_log/_staged.json"):
            assert lake.ask("write", key, lines=write, overwrite=False) == {"done": True}
    finally:
        lake.store.ask("release")
    assert error[0].startswith("io.soal.logstore.Refused: SafeWriter [session]: ")
    assert lake.get(f"table/{COMMIT}") is None
    assert lake.ask("write", f"table/{COMMIT}", lines=write, overwrite=False) == {"done": True}


def test_a_file_may_be_overwritten_on_demand(lake: Bucket) -> None:
    """`_last_checkpoint` is not a commit: its PUT has no condition."""
    for line in ("a", "b"):
        assert lake.ask("write", "_delta_log/_last_checkpoint", lines=[line], overwrite=True) == {"done": True}
    assert lake.get("_delta_log/_last_checkpoint") == "b\n"
    assert PUT not in lake.requests()


def listed(lake: Bucket, key: str, scheme: str = "s3a") -> Any:
    """Return what the log store lists from a key on; assert that Delta's own store lists the same."""
    path = f"{scheme}://{lake.bucket}/{lake.folder}/{key}"
    ours, stock = (lake.store.ask("list", path=path, stock=stock) for stock in (False, True))
    assert ours == stock
    if "error" in ours:
        return ours["error"][0].split(":")[0]
    return [one[0].removeprefix(f"{scheme}://{lake.bucket}/{lake.folder}/") for one in ours["found"]]


def test_a_log_is_listed_from_a_version_on(lake: Bucket) -> None:
    """With one request, whatever the log's length."""
    names = [f"{version:020}.json" for version in (0, 7, 8)]
    for name in (*names, f"{7:020}.crc", "_last_checkpoint", "_sidecars/of-a-checkpoint.parquet"):
        lake.put(f"t/_delta_log/{name}", "{}")
    lake.put(f"t/_delta_log_of_another/{9:020}.json", "{}")
    lake.ask("list", f"t/{COMMIT}")
    assert lake.requests() == ["ListObjectsV2"]
    found = [f"t/_delta_log/{name}" for name in (*names[1:], "_last_checkpoint", "_sidecars")]
    assert listed(lake, f"t/{COMMIT}") == found
    assert listed(lake, f"t/{COMMIT}", "s3") == found


def test_a_log_without_a_later_version_is_told_from_none(lake: Bucket) -> None:
    """Delta takes a missing log for a table that does not exist."""
    lake.put(f"t/_delta_log/{3:020}.json", "{}")
    assert listed(lake, f"t/{COMMIT}") == []
    lake.put("u/part-0.parquet", "of no table")
    assert listed(lake, f"u/{COMMIT}") == "java.io.FileNotFoundException"
    assert lake.ask("folder", "v/_delta_log") == {"done": True}
    assert listed(lake, f"v/{COMMIT}") == []
    lake.put("w/_delta_log", "a file")
    assert listed(lake, f"w/{COMMIT}") == ["w/_delta_log"]


@pytest.mark.parametrize("folder", ["t", "t/_delta_log"])
def test_a_folder_is_listed_as_by_delta_s_own_store(lake: Bucket, folder: str) -> None:
    """With folders, sorted by name, for all kinds of names: Delta lists a table's data this way."""
    names = ["a-b", "a/1", "b=x%20y/1", "b=x%2520y/1", "b=\u00e4\U0001f600/1", "b=\ufb01/1", "c d/1", "e+f", "z"]
    for name in names:
        lake.put(f"{folder}/{name}", "x")
    lake.put(f"{folder}0/b", "of another folder")
    assert lake.ask("folder", f"{folder}/empty") == {"done": True}
    for first in ("\0", "a", "a-", "b=", "b=x%20y", "c d", "z", "zz"):
        expected = [name for name in ("empty", *(name.split("/")[0] for name in names)) if name >= first]
        assert len(listed(lake, f"{folder}/{first}")) == len(expected)
    for inner in ("b=x%20y", "b=x%2520y", "c d", "empty", "none"):
        listed(lake, f"{folder}/{inner}/\0")


def test_what_is_overwritten_and_where_it_lies_is_as_in_delta_s_own_store(lake: Bucket) -> None:
    """Neither store shows partial files, and neither needs a folder."""
    for name in ("own", "stock"):
        for body in ("a", "b"):
            answer = lake.ask("write", f"{name}/new/manifest", lines=[body], overwrite=True, stock=name == "stock")
            assert answer == {"done": True}
        assert lake.get(f"{name}/new/manifest") == "b\n"
    for path in ("s3://lake/a b/%20/c", "s3a://lake/a"):
        own, stock = (lake.store.ask("qualities", path=path, stock=stock) for stock in (False, True))
        assert own == stock == {"resolved": path, "partial": False}


def test_a_checksum_is_one_request(lake: Bucket) -> None:
    """A cancelled one sends no request; a second one replaces the first."""
    key = "_delta_log/00000000000000000007.crc"
    assert lake.ask("checkpoint", key, body="half", cancel=True) == {"done": True}
    assert lake.requests() == []
    lake.put(key, "of another")
    assert lake.ask("checkpoint", key, body="whole") == {"done": True}
    assert (lake.requests(), lake.get(key)) == (["PutObject"], "whole")


def test_a_file_of_a_query_s_logs_is_created_or_was_there(lake: Bucket) -> None:
    """By one conditional request: it shows a stream whether another run has the same batch."""
    assert lake.ask("checkpoint", "offsets/0", body="half", cancel=True) == {"done": True}
    assert lake.requests() == []
    assert lake.ask("checkpoint", "offsets/0", body="of one") == {"done": True}
    assert lake.requests() == [PUT]
    error = lake.ask("checkpoint", "offsets/0", body="of another")["error"]
    assert "FileAlreadyExistsException" in error[0]
    assert lake.get("offsets/0") == "of one"


def test_two_runs_of_a_query_do_not_both_note_a_batch(lake: Bucket) -> None:
    """Although both files have the same bytes."""
    assert lake.ask("checkpoint", "commits/0", body=NOTED) == {"done": True}
    assert "FileAlreadyExistsException" in lake.ask("checkpoint", "commits/0", body=NOTED)["error"][0]


def test_a_batch_is_noted_though_the_answer_was_lost(lake: Bucket) -> None:
    """The run recognises its own file by the mark in the header."""
    lake.breaks("PutObject", LoseReply())
    assert lake.ask("checkpoint", "commits/0", body=NOTED) == {"done": True}
    assert lake.requests() == [PUT, "HeadObject"]


def test_a_file_of_a_query_s_logs_by_another_writer_is_not_ours(lake: Bucket) -> None:
    """Spark's own code and earlier versions of this one write no mark."""
    lake.put("commits/0", NOTED)
    assert "FileAlreadyExistsException" in lake.ask("checkpoint", "commits/0", body=NOTED)["error"][0]


def test_a_file_of_a_query_s_logs_that_was_not_applied_is_sent_again(lake: Bucket) -> None:
    """No file is there, neither ours nor another run's."""
    lake.breaks("PutObject", Refuse())
    assert lake.ask("checkpoint", "commits/0", body=NOTED) == {"done": True}
    assert (lake.requests().count(PUT), lake.get("commits/0")) == (2, NOTED)


def test_a_file_of_a_query_s_state_takes_the_place_of_another(lake: Bucket) -> None:
    """By one request: a repeated batch writes its state again."""
    for body in ("once", "again"):
        assert lake.ask("checkpoint", "state/0/0/1.delta", body=body, overwrite=True) == {"done": True}
    assert (lake.requests(), lake.get("state/0/0/1.delta")) == (["PutObject", "PutObject"], "again")
