"""A task of a snapshot's build writes its partition's shards to new places, in order, or fails and leaves nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.config import Duplicates
from safewriter.snapshots.errors import KeyRangeError, ShardWriteError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.shard_file import ShardFile, sha256_of
from safewriter.snapshots.routing.hashing import digest
from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.write.columns import KEY, SHARD, VALUE
from safewriter.snapshots.write.gate import gate
from safewriter.snapshots.write.limits import RateLimits
from safewriter.snapshots.write.paths import Paths
from safewriter.snapshots.write.rows import RowFormat
from safewriter.snapshots.write.task import ShardTask, TaskId
from safewriter.snapshots.write.values import binary_col

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class Uploads:
    """Receives files, and keeps their rows, size and digest by URL."""

    def __init__(self, fails_at: int = 99) -> None:
        self.files: dict[str, tuple[dict[bytes, bytes], int, str]] = {}
        self._fails_at = fails_at

    def upload(self, path: Path, url: str) -> None:
        if len(self.files) == self._fails_at:
            raise StoreError("no answer")
        assert list(path.parent.parent.iterdir()) == [path.parent]  # the disk holds one shard at a time
        with closing(sqlite3.connect(path)) as connection:
            rows = dict(connection.execute("SELECT k, v FROM kv"))
        self.files[url] = (rows, path.stat().st_size, sha256_of(path))


PATHS = Paths("s3://lake/p", "shards", "r", "db={db_id}", "build")


def task(uploads: Any, folder: Path, *, duplicates: Duplicates = Duplicates.ERROR) -> ShardTask:
    rows = RowFormat(HashRouting(4), KeyEncoding.U64BE, binary_col("v"), "id")
    return ShardTask(TaskId(1, 2, 77, 5), PATHS, rows, duplicates, str(folder), uploads)


def batches(keys: list[int], size: int = 30) -> Iterator[pa.RecordBatch]:
    ordered = sorted((digest(key) % 4, key) for key in keys)
    for first in range(0, len(ordered), size):
        part = ordered[first : first + size]
        columns = [pa.array([shard for shard, _ in part], pa.int32()), pa.array([key for _, key in part])]
        yield pa.RecordBatch.from_arrays([*columns, pa.array([b"v"] * len(part))], names=[SHARD, KEY, VALUE])


class Adapter:
    """A caller's own database, which records the calls. It keeps its rows when it is closed."""

    def __init__(self, db_url: str, local_dir: Path, told: dict[str, list[Any]], *, fails: str) -> None:
        assert list(local_dir.iterdir()) == []
        assert list(local_dir.parent.iterdir()) == [local_dir]
        (local_dir / "scratch").touch()
        self._told = told.setdefault(db_url, [])
        self._fails = fails

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._tell("close" if kind is None else f"close after {kind.__name__}")

    def write_batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._told += pairs
        self._tell("write")

    def flush(self) -> None:
        self._tell("flush")

    def seal(self) -> None:
        self._tell("seal")

    def db_bytes(self) -> int:
        assert self._told[-1] == "seal"  # called before `__exit__`
        return 4711

    def close(self) -> None:
        raise AssertionError  # only `__exit__` closes it

    def _tell(self, what: str) -> None:
        self._told.append(what)
        if what in self._fails.split(","):
            raise OSError(what)


def with_adapter(folder: Path, told: dict[str, list[Any]], *, fails: str = "") -> ShardTask:
    found = task(None, folder, duplicates=Duplicates.ANY)
    found.adapter_factory = lambda *, db_url, local_dir: Adapter(db_url, local_dir, told, fails=fails)
    return found


def test_an_adapter_gets_each_shard_in_order(tmp_path: Path) -> None:
    """Rows are sorted, each key once, with a new directory and URL for each shard; nothing else is uploaded."""
    told: dict[str, list[Any]] = {}
    results = list(with_adapter(tmp_path, told).run(batches([*range(200), 7, 7])))
    *shards, whole = (row for result in results for row in result.to_pylist())
    assert (whole["rows"], sum(row["stored"] for row in shards), len(told)) == (202, 200, 4)
    for row in shards:
        pairs = [one for one in told[row["db_url"]] if isinstance(one, tuple)]
        assert pairs == sorted(set(pairs))
        assert len(pairs) == row["stored"] == row["kept"]
        assert told[row["db_url"]][-3:] == ["flush", "seal", "close"]
        assert (row["db_bytes"], row["sha256"]) == (4711, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails", ["write", "flush", "seal", "close", "write,close after ShardWriteError"])
def test_an_adapter_that_fails_fails_its_task(tmp_path: Path, fails: str) -> None:
    """The error names the shard; the adapter is closed, and gets the error."""
    told: dict[str, list[Any]] = {}
    cause = fails.partition(",")[0]
    with pytest.raises(ShardWriteError, match=rf"shard 0 .* OSError\('{cause}'\)") as failed:
        list(with_adapter(tmp_path, told, fails=fails).run(batches([1, 2, 3, 4, 5, 6])))
    assert (failed.value.db_id, list(told)) == (0, [failed.value.db_url])
    assert told[failed.value.db_url][-1] == "close after ShardWriteError"
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_is_let_go_whatever_ends_its_task(tmp_path: Path) -> None:
    """It is closed even if Spark cancels the task."""
    told: dict[str, list[Any]] = {}

    def cancelled() -> Iterator[pa.RecordBatch]:
        yield from batches([1])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(with_adapter(tmp_path, told).run(cancelled()))
    assert [found[-1] for found in told.values()] == ["close after KeyboardInterrupt"]


def test_a_source_that_fails_before_its_first_row_fails_its_task(tmp_path: Path) -> None:
    """The source's own error propagates."""

    def broken() -> Iterator[pa.RecordBatch]:
        raise OSError("the source is gone")
        yield

    with pytest.raises(OSError, match="the source is gone"):
        list(task(Uploads(), tmp_path).run(broken()))


def test_the_rows_of_a_shard_are_those_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver compares their number with that of the added rows."""
    monkeypatch.setattr(ShardFile, "stored_rows", lambda _: 17)
    shard, _ = (row for result in task(Uploads(), tmp_path).run(batches([1])) for row in result.to_pylist())
    assert (shard["kept"], shard["stored"]) == (1, 17)


def test_an_attempt_that_fails_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """No object, file or row stays: the shard in progress is not uploaded, and the retry starts over."""
    uploads = Uploads()

    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches([key for key in range(500) if digest(key) % 4 == 0])
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        list(task(uploads, tmp_path).run(broken()))
    assert (uploads.files, list(tmp_path.iterdir())) == ({}, [])
    own = [key for key in range(500, 600) if digest(key) % 4 == 0]
    list(task(uploads, tmp_path).run(batches(own)))
    (found,) = uploads.files.values()
    assert [int.from_bytes(key, "big") for key in found[0]] == own


def test_each_shard_of_a_partition_becomes_a_file(tmp_path: Path) -> None:
    """Batch boundaries do not matter; the task reports each shard, and the number of rows that it got."""
    uploads = Uploads()
    found = [row for result in task(uploads, tmp_path).run(batches(list(range(500)))) for row in result.to_pylist()]
    *shards, whole = found
    assert (whole["db_id"], whole["rows"], whole["partition"]) == (None, 500, 1)
    assert [row["db_id"] for row in shards] == [0, 1, 2, 3]
    for row in shards:
        rows, size, digest_ = uploads.files[f"{row['db_url']}/shard.db"]
        own = [number for number in range(500) if digest(number) % 4 == row["db_id"]]
        assert sorted(int.from_bytes(key, "big") for key in rows) == own
        assert (row["rows"], row["stored"], row["db_bytes"], row["sha256"]) == (len(rows), len(rows), size, digest_)
        assert (row["min_key"], row["max_key"]) == (min(rows), max(rows))
        assert (row["attempt"], row["task_attempt_id"], row["stage_id"]) == (2, 77, 5)
    assert list(tmp_path.iterdir()) == []


def test_no_two_attempts_write_to_one_place(tmp_path: Path) -> None:
    """This holds even if Spark gives them the same number, as after a repeated stage."""
    uploads = Uploads()
    results = [one for _ in range(2) for one in task(uploads, tmp_path / "new" / "one").run(batches([1, 2, 3]))]
    checkpoints = [row["checkpoint_id"] for one in results for row in one.to_pylist() if row["db_id"] is not None]
    assert len(set(checkpoints)) == len(uploads.files)
    assert len({url for url in uploads.files if "/db=" in url}) == len(uploads.files)
    assert len(uploads.files) == 2 * len({digest(key) % 4 for key in (1, 2, 3)})


def test_a_task_that_fails_uploads_nothing_more(tmp_path: Path) -> None:
    """The error names the shard; no file stays on the machine."""
    uploads = Uploads(fails_at=1)
    with pytest.raises(
        ShardWriteError, match="shard 1 was not written to s3://lake/p/shards/run_id=r/db=1/attempt=02-build-"
    ) as failed:
        list(task(uploads, tmp_path).run(batches(list(range(500)))))
    assert (failed.value.db_id, len(uploads.files)) == (1, 1)
    assert failed.value.rows_written == len([n for n in range(500) if digest(n) % 4 == 1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 30])
def test_two_rows_of_one_key_fail_the_task_or_one_of_them_stays(tmp_path: Path, size: int) -> None:
    """Batch boundaries do not matter; the key is named, and its shard is not uploaded."""
    uploads = Uploads()
    with pytest.raises(KeyRangeError, match="have the id 7"):
        list(task(uploads, tmp_path).run(batches([7, 7], size)))
    assert not uploads.files
    results = list(task(uploads, tmp_path, duplicates=Duplicates.ANY).run(batches([7, 7], size)))
    shard, whole = (row for result in results for row in result.to_pylist())
    assert (shard["rows"], shard["stored"], whole["rows"]) == (2, 1, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_task_without_rows_writes_nothing(tmp_path: Path) -> None:
    """It still returns a result: a missing one would be an error."""
    uploads = Uploads()
    (result,) = task(uploads, tmp_path).run(iter(()))
    assert (result.to_pylist()[0]["rows"], uploads.files) == (0, {})


def test_a_task_keeps_its_rate_limits(tmp_path: Path) -> None:
    """They hold over all its shards, and the result has the time that it waited."""
    naps: list[float] = []
    limited = task(Uploads(), tmp_path)
    limited.limiter = RateLimits(2.0).limiter(lambda: sum(naps), naps.append)
    *_, whole = (row for result in limited.run(batches(list(range(500)))) for row in result.to_pylist())
    assert sum(naps) == pytest.approx(249.0)
    assert whole["waited_ms"] == 249_000


@pytest.mark.parametrize("shut_behind", [1, 2, 3])
def test_a_task_behind_a_shut_gate_ends_at_its_next_row(tmp_path: Path, shut_behind: int) -> None:
    """Its process may outlive its build, and the driver waits for it."""
    uploads = Uploads()
    with gate(str(tmp_path / "driver")) as opened:

        def until_shut() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(batches([*range(200)], size=20)):
                assert number <= shut_behind
                if number == shut_behind:
                    opened.shut()
                    uploaded.update(uploads.files)
                yield batch

        uploaded: dict[str, Any] = {}
        one = task(uploads, tmp_path)
        one.gate = str(opened.path)
        with pytest.raises(ShardWriteError, match="the build is over"):
            list(one.run(until_shut()))
        assert uploads.files == uploaded
        assert opened.wait_until_empty(0)


def test_a_shard_whose_rows_end_behind_a_shut_gate_is_not_uploaded(tmp_path: Path) -> None:
    """Spark has cut the rows off, which looks like their end."""
    uploads = Uploads()
    with gate(str(tmp_path / "driver")) as opened:

        def cut_off() -> Iterator[pa.RecordBatch]:
            yield from batches([1, 2, 3])
            opened.shut()

        one = task(uploads, tmp_path)
        one.gate = str(opened.path)
        with pytest.raises(ShardWriteError, match="the build is over"):
            list(one.run(cut_off()))
        assert len(uploads.files) < len({digest(key) % 4 for key in (1, 2, 3)})
