"""`soal orphans` chooses the Delta log's commits and checkpoints that it needs, or refuses a log with a gap."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from safewriter.objects import ListedObject
from soal.orphans.log_actions import UnreadableLogError
from soal.orphans.retained import LogFiles

NAME = uuid.uuid4()


def read(*names: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the versions of the commits and the names of the checkpoints to read."""
    files = LogFiles.of(ListedObject(f"_delta_log/{name}", 1, datetime.now(UTC)) for name in sorted(names))
    return tuple(files.commits), tuple(key.removeprefix("_delta_log/") for key in files.checkpoints)


def commit(version: int) -> str:
    return f"{version:020}.json"


def checkpoint(version: int, more: str = "") -> str:
    return f"{version:020}.checkpoint{more}.parquet"


def test_a_log_from_version_0_needs_no_checkpoint() -> None:
    """With all commits no checkpoint is needed; checksums and the like are ignored."""
    names = [commit(0), commit(1), checkpoint(1), f"{1:020}.crc", "_last_checkpoint", f"{0:020}.{1:020}.compacted.json"]
    assert read(*names) == ((0, 1), ())


def test_a_log_that_was_cleaned_needs_the_oldest_checkpoint_of_its_row() -> None:
    """A cleaned log needs the oldest checkpoint of the unbroken sequence, which replaces all older commits."""
    names = [*map(commit, range(10, 31)), checkpoint(10), checkpoint(20), checkpoint(30)]
    assert read(*names) == (tuple(range(10, 31)), (checkpoint(10),))


def test_a_checkpoint_whose_commit_is_gone_can_be_the_beginning() -> None:
    """A checkpoint without its commit can be the start, if the next commit exists."""
    assert read(checkpoint(10), commit(11), commit(12)) == ((11, 12), (checkpoint(10),))


def test_what_lies_before_a_gap_is_needed_too() -> None:
    """Before a gap, checkpoints are readable versions, and a lone commit may name files that it removed."""
    assert read(commit(3), checkpoint(5), checkpoint(10), commit(11)) == ((3, 11), (checkpoint(5), checkpoint(10)))


@pytest.mark.parametrize("name", [f".{NAME}"])
def test_a_checkpoint_named_by_a_uuid_counts(name: str) -> None:
    """Checkpoints named by UUID count, in Parquet or JSON; all of several are read."""
    as_json = f"{10:020}.checkpoint{name}.json"
    assert read(as_json, checkpoint(10, name), commit(11))[1] == (as_json, checkpoint(10, name))


def test_a_checkpoint_in_parts_counts_when_all_are_there() -> None:
    """A checkpoint in parts counts only if all parts exist."""
    parts = [checkpoint(10, f".{part:010}.{3:010}") for part in (1, 2, 3)]
    assert read(*parts, commit(11))[1] == tuple(parts)
    with pytest.raises(UnreadableLogError, match="no whole checkpoint"):
        read(*parts[:2], commit(11))


@pytest.mark.parametrize(
    "names",
    [
        [commit(11), commit(12)],
        [checkpoint(9), commit(11)],
        [commit(0), commit(1), commit(3)],
        [checkpoint(5), commit(5), commit(7)],
    ],
)
def test_a_log_with_a_gap_and_nothing_to_bridge_it_is_refused(names: list[str]) -> None:
    """A gap without a checkpoint is refused: the missing versions may have added needed files."""
    with pytest.raises(UnreadableLogError, match="no whole checkpoint"):
        read(*names)


def test_a_folder_without_a_commit_is_no_table() -> None:
    """A folder without a commit is not a table, even with a checkpoint."""
    with pytest.raises(UnreadableLogError, match="no commit"):
        read(checkpoint(10))
