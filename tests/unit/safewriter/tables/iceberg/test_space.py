"""A settler has the metadata of one large table at a time, from its read to the end of what it does with it."""

from __future__ import annotations

import dataclasses
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.identity import Attempt
from safewriter.objects import StoreError
from safewriter.objects.location import Location
from safewriter.settle.recovery import Cause
from safewriter.tables.iceberg.space import _ONE_LARGE, check_space, one_large
from safewriter.tables.table import Intent
from tests.support.waiting import BUSY_S
from tests.unit.safewriter.tables.iceberg.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from safewriter.tables.iceberg.table import IcebergTable

LARGE = b"x" * (16 << 20) + b"x"
SMALL = LARGE[1:]


def forever() -> bool:
    return True


def held(text: bytes) -> bool:
    """Return whether the use of this metadata keeps other large metadata waiting."""
    check_space("s3://lake/0.metadata.json", text)
    return _ONE_LARGE.locked()


def test_one_large_table_at_a_time_and_any_number_of_small_ones() -> None:
    """Large metadata is this thread's until the end of its outer block, also if that raises; small metadata waits for
    nobody.
    """
    with one_large(forever):
        assert not held(SMALL)
    with pytest.raises(ZeroDivisionError), one_large(forever):
        with one_large(forever):
            assert held(LARGE)
        assert held(LARGE)
        1 / 0  # noqa: B018 - raises
    assert not _ONE_LARGE.locked()


def test_another_thread_gets_large_metadata_after_the_first_one_s_block() -> None:
    """A second thread waits with its large metadata, and then has it."""
    began, had = threading.Event(), threading.Event()

    def second() -> None:
        with one_large(forever):
            began.set()
            check_space("s3://lake/1.metadata.json", LARGE)
            had.set()

    with one_large(forever):
        assert held(LARGE)
        thread = threading.Thread(target=second)
        thread.start()
        assert began.wait(60)
        assert not had.is_set()
    thread.join(60)
    assert had.is_set()
    assert not _ONE_LARGE.locked()


def test_nobody_waits_for_large_metadata_longer_than_there_is_time() -> None:
    """A write that waits takes no more than its share, and leaves the metadata to the one that has it."""
    ended: list[object] = []

    def second() -> None:
        try:
            with one_large(lambda: False):
                check_space("s3://lake/1.metadata.json", LARGE)
        except StoreError as error:
            ended.append(error)

    with one_large(forever):
        assert held(LARGE)
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(BUSY_S)
        assert "out of time" in str(ended)
        assert _ONE_LARGE.locked()
    assert not _ONE_LARGE.locked()


def test_a_table_waits_within_its_settler_s_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that cannot be read in time is left to the next settler."""
    bench = Bench(tmp_path, monkeypatch)
    bench.claim()
    enlarge(bench)
    table = dataclasses.replace(bench.table(), may_go_on=lambda: False)
    with ThreadPoolExecutor(1) as pool, one_large(forever):
        assert held(LARGE)
        with pytest.raises(StoreError, match="out of time"):
            pool.submit(table.trace, bench.write.key, bench.now_ms).result(BUSY_S)


def test_a_block_s_own_process_waits_for_nobody() -> None:
    """Outside of a settler's use, as in a script's block, large metadata is not held."""
    assert not held(LARGE)


def enlarge(bench: Bench) -> None:
    """Give the table's metadata a text that makes it large."""
    key = Location.parse(bench.load().metadata_location).key
    stored = bench.lake.get(key)
    assert stored is not None
    metadata = json.loads(stored.body)
    metadata["properties"]["comment"] = LARGE.decode()
    bench.lake.put(key, json.dumps(metadata).encode())


USES: dict[str, Callable[[IcebergTable, Bench], object]] = {
    "next_move": lambda table, bench: table.next_move(
        bench.document, Intent(Cause.KILLED.value, undo=False, nothing_sent=False)
    ),
    "remove_leftovers": lambda table, bench: table.remove_leftovers(bench.document, bench.document.attempts),
    "remove_skipped": lambda table, bench: table.remove_skipped(bench.document, Attempt.draw().nonce),
    "trace": lambda table, bench: table.trace(bench.write.key, bench.now_ms),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_large_table_holds_it_to_its_end(
    use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdict, clean-up and search of a write keep other large metadata waiting until they end."""
    bench = Bench(tmp_path, monkeypatch)
    bench.claim()
    enlarge(bench)
    table, after = bench.table(), []
    read = type(table)._read

    def seen(self: IcebergTable, *arguments: Any) -> object:
        found = read(self, *arguments)
        after.append(_ONE_LARGE.locked())
        return found

    monkeypatch.setattr(type(table), "_read", seen)
    USES[use](table, bench)
    assert after
    assert all(after)
    assert not _ONE_LARGE.locked()
