from __future__ import annotations

import pytest

from scripts.campaign.replay.replaying import CrashState


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
