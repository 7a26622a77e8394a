"""The campaign's judge names the promise that a table, its files or its verdict breaks after a fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.campaign.judging import UNCLAIMED, Seen, violations_of

BEFORE, AFTER = (1, 2), (1, 2, 3)
DONE = Seen(
    guarded=True,
    acknowledged=True,
    verdict="committed",
    before=BEFORE,
    after=AFTER,
    found=AFTER,
    found_at_end=AFTER,
    retry_succeeded=True,
)
DEAD = replace(DONE, acknowledged=False, verdict="rolled_back", found=BEFORE)
PLAIN = replace(DONE, guarded=False, verdict=None)


@pytest.mark.parametrize(
    ("seen", "broken"),
    [
        pytest.param(DONE, [], id="done"),
        pytest.param(DEAD, [], id="rolled back"),
        pytest.param(replace(DONE, acknowledged=False), [], id="landed, and the document says so"),
        pytest.param(replace(DONE, found=BEFORE), ["lost", "wrong_verdict"], id="acknowledged, and not there"),
        pytest.param(replace(DEAD, acknowledged=True, thawed=True), [], id="thawed, and its retry was there before"),
        pytest.param(
            replace(DEAD, acknowledged=True, thawed=True, found_at_end=BEFORE), ["lost", "gap"], id="thawed, and gone"
        ),
        pytest.param(replace(DEAD, found=AFTER), ["unacknowledged", "wrong_verdict"], id="rolled back, and there"),
        pytest.param(replace(DEAD, verdict="in_progress"), ["unknown"], id="no verdict"),
        pytest.param(replace(DEAD, verdict=UNCLAIMED), [], id="dead before its claim"),
        pytest.param(replace(DONE, verdict=UNCLAIMED), ["wrong_verdict"], id="acknowledged, and unclaimed"),
        pytest.param(replace(DEAD, found=(1,)), ["wrong_verdict"], id="neither before nor after"),
        pytest.param(replace(DONE, found_at_end=(1, 2, 3, 3)), ["doubled"], id="twice after the retry"),
        pytest.param(replace(DONE, found_at_end=(1, 2)), ["gap"], id="gone after the retry"),
        pytest.param(replace(DONE, found_at_end=(1, 3, 3)), ["doubled", "gap"], id="another one twice"),
        pytest.param(replace(DEAD, changed=True), ["changed"], id="changed behind the verdict"),
        pytest.param(replace(DEAD, orphans=2), ["orphans"], id="files left"),
        pytest.param(replace(DONE, retry_succeeded=False), ["retry_failed"], id="the retry failed"),
        pytest.param(
            replace(DEAD, acknowledged=True, retry_succeeded=False, found_at_end=BEFORE),
            ["lost", "gap", "retry_failed"],
            id="a failed retry hides nothing",
        ),
        pytest.param(Seen(harness_failed=True), ["harness_error"], id="the harness failed"),
        pytest.param(PLAIN, [], id="plain, done"),
        pytest.param(replace(PLAIN, acknowledged=False), ["unacknowledged"], id="plain, killed after the commit"),
        pytest.param(
            replace(PLAIN, acknowledged=False, found=BEFORE, orphans=1), ["orphans"], id="plain, killed before it"
        ),
    ],
)
def test_what_is_broken_has_a_name(seen: Seen, broken: list[str]) -> None:
    """Each promise has its own."""
    assert violations_of(seen) == broken
