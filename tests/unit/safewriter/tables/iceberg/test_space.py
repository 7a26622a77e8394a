"""A settler has the metadata of one large table at a time, from its read to the end of what it does with it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.identity import Attempt
from safewriter.objects.location import Location
from safewriter.settle.recovery import Cause
from safewriter.tables.iceberg.space import _ONE_LARGE, check_space, one_large
from safewriter.tables.table import Intent
from tests.unit.safewriter.tables.iceberg.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from safewriter.tables.iceberg.table import IcebergTable

LARGE = b"x" * (16 << 20) + b"x"
SMALL = LARGE[1:]


def held(text: bytes) -> bool:
    """Return whether the use of this metadata keeps other large metadata waiting."""
    check_space("s3://lake/0.metadata.json", text)
    return _ONE_LARGE.locked()


def test_one_large_table_at_a_time_and_any_number_of_small_ones() -> None:
    """Large metadata is this thread's until the end of its outer block, also if that raises; small metadata waits for
    nobody.
    """
    with one_large():
        assert not held(SMALL)
    with pytest.raises(ZeroDivisionError), one_large():
        with one_large():
            assert held(LARGE)
        assert held(LARGE)
        1 / 0  # noqa: B018 - raises
    assert not _ONE_LARGE.locked()


def test_another_thread_gets_large_metadata_after_the_first_one_s_block() -> None:
    """A second thread waits with its large metadata, and then has it."""
    began, had = threading.Event(), threading.Event()

    def second() -> None:
        with one_large():
            began.set()
            check_space("s3://lake/1.metadata.json", LARGE)
            had.set()

    with one_large():
        assert held(LARGE)
        thread = threading.Thread(target=second)
        thread.start()
        assert began.wait(60)
        assert not had.is_set()
    thread.join(60)
    assert had.is_set()
    assert not _ONE_LARGE.locked()


def test_a_block_s_own_process_waits_for_nobody() -> None:
    """Outside of a settler's use, as in a script's block, large metadata is not held."""
    assert not held(LARGE)


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
    key = Location.parse(bench.load().metadata_location).key
    stored = bench.lake.get(key)
    assert stored is not None
    metadata = json.loads(stored.body)
    metadata["properties"]["comment"] = LARGE.decode()
    bench.lake.put(key, json.dumps(metadata).encode())
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
