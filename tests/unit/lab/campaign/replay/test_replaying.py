"""The campaign replays one crash state by its name, and judges the table and files that the settlers leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.lab.campaign.job import AFTER, BEFORE
from tests.lab.campaign.judging import Seen, violations_of
from tests.lab.campaign.replay.recording import Recording, Subject
from tests.lab.campaign.replay.replaying import CrashState, Replayer
from tests.lab.experiment.tables import LAKE

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("state", "name"),
    [
        (CrashState("delta-append-write", 0, 0, "sweeper"), "delta-append-write-0-0-sweeper-end"),
        (
            CrashState("iceberg-merge-write", 0x1F, 0x20, "supervisor", "land", 12),
            "iceberg-merge-write-1f-20-supervisor-land12",
        ),
    ],
)
def test_a_name_says_all_of_its_state(state: CrashState, name: str) -> None:
    """A row is enough to replay it."""
    assert state.name == name
    assert CrashState.parse(name) == state


@pytest.mark.parametrize("name", ["", "delta-append-guarded-torn-03", "delta-append-write-1g-0-sweeper-end"])
def test_any_other_name_is_refused(name: str) -> None:
    """With an example of a right one."""
    with pytest.raises(ValueError, match="delta-append-write-1f-20-sweeper-land2"):
        CrashState.parse(name)


@pytest.mark.parametrize(
    ("state", "is_late"),
    [
        (CrashState("x", 1, 0, "sweeper"), False),
        (CrashState("x", 1, 2, "sweeper"), True),
        (CrashState("x", 1, 2, "supervisor"), False),
        (CrashState("x", 1, 2, "supervisor", "die", 1), True),
        (CrashState("x", 1, 2, "supervisor", "land", 1), False),
    ],
)
def test_only_what_lands_behind_the_sweeper_is_late_behind_all_grace(state: CrashState, *, is_late: bool) -> None:
    """Its files may stay, and its commit must not count."""
    assert state.is_late_behind_grace is is_late


def test_a_table_that_names_files_which_are_gone_is_in_no_right_state(tmp_path: Path) -> None:
    """Not even as good as empty: before a write that creates its table there are no rows, either."""
    write_deltalake(tmp_path, pa.table({"id": pa.array(AFTER["create"], pa.int64())}))
    recording = Recording(
        subject=Subject(table_format="delta", statement="create"),
        table=f"s3a://{LAKE}/t",
        root="t",
        ended_ms=0,
        base={f"t/{one.relative_to(tmp_path)}": (0, one.read_bytes()) for one in tmp_path.glob("_delta_log/*.json")},
        catalog=b"",
        steps=(),
    )
    with Replayer(recording) as replayer:
        replayer._folder = tmp_path
        replayer._begin(CrashState(recording.subject.name, 0, 0, "sweeper"))
        found = replayer._found()
    assert found not in (BEFORE["create"], AFTER["create"])
    seen = Seen(guarded=True, verdict="rolled_back", before=BEFORE["create"], after=AFTER["create"], found=found)
    assert "wrong_verdict" in violations_of(seen)
