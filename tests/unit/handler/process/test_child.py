from __future__ import annotations

import pytest

from handler.process.child import Ladder
from safewriter.deadline import Deadline


@pytest.mark.parametrize(
    ("total_ms", "warn_ms", "terminate_ms", "kill_ms"),
    [(900_000, 30_000, 15_000, 12_000), (20_000, 30_000, 2_500, 2_000), (0, 30_000, 0, 0)],
)
def test_the_steps_follow_from_the_lead(total_ms: int, warn_ms: int, terminate_ms: int, kill_ms: int) -> None:
    """Half of the lead before the deadline, and two fifths: SafeWriter has the first half, settling the last."""
    deadline = Deadline(1_000_000 + total_ms, 1_000_000)
    ladder = Ladder.of(deadline, warn_ms)
    assert (deadline.at_ms - ladder.terminate_at_ms, deadline.at_ms - ladder.kill_at_ms) == (terminate_ms, kill_ms)
