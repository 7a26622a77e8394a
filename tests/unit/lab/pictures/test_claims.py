"""The pictures for the documents are drawn only if the facts of their runs make every claim true."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.lab.pictures.claims import claims_of
from tests.support.pictures import FACTS, state

if TYPE_CHECKING:
    from tests.lab.pictures.facts import Facts, KilledJob


def false_claims(facts: Facts) -> list[str]:
    return [claim.text for claim in claims_of(facts) if not claim.holds]


def with_kill(kill: KilledJob) -> Facts:
    kept = (one for one in FACTS.kills if (one.is_guarded, one.moment) != (kill.is_guarded, kill.moment))
    return replace(FACTS, kills=(*kept, kill))


def test_facts_as_the_protocol_promises_them_make_every_claim_true() -> None:
    """The pictures may be drawn."""
    assert false_claims(FACTS) == []


@pytest.mark.parametrize("moment", ["marked", "written", "landed", "settled"])
def test_a_guarded_batch_that_is_lost_doubled_or_untidy_is_not_drawn(moment: str) -> None:
    """After each kill the retry must leave exactly the batch, without orphans, and say so."""
    (kill,) = (one for one in FACTS.kills if one.is_guarded and one.moment == moment)
    right = kill.retried
    for wrong in (
        replace(right, rows=kill.before.rows),
        replace(right, rows=right.rows + FACTS.batch_rows),
        replace(right, orphans=1),
        replace(right, status="in_progress"),
        replace(right, epoch=3),
    ):
        assert len(false_claims(with_kill(replace(kill, retried=wrong)))) == 1
    assert false_claims(with_kill(replace(kill, retry="FAILED")))
    assert false_claims(with_kill(replace(kill, killed=replace(kill.killed, markers=0))))
    assert false_claims(with_kill(replace(kill, killed=replace(kill.killed, status="rolled_back"))))


def test_a_job_without_the_guard_that_comes_out_right_is_not_drawn_as_wrong() -> None:
    """What the picture says of the unguarded job must have been seen: orphans, and rows twice."""
    written, landed = (FACTS.kill(moment, is_guarded=False) for moment in ("written", "landed"))
    assert false_claims(with_kill(replace(landed, retried=state(1))))
    assert false_claims(with_kill(replace(landed, killed=state(1, status="committed"))))
    assert false_claims(with_kill(replace(written, killed=state(0))))
    assert false_claims(with_kill(replace(written, killed=state(1, orphans=13))))
    assert false_claims(with_kill(replace(written, retried=state(1))))


@pytest.mark.parametrize("step", range(8))
def test_a_write_without_one_of_its_requests_is_not_drawn(step: int) -> None:
    """Each step of the protocol must have been seen; of two data files one will do."""
    requests = FACTS.write.requests
    less = replace(FACTS, write=replace(FACTS.write, requests=requests[:step] + requests[step + 1 :]))
    is_data = requests[step].key_class == "data"
    assert bool(false_claims(less)) is not is_data


def test_a_write_out_of_order_refused_or_without_its_conditions_is_not_drawn() -> None:
    """Order, answers and conditional requests are claims, too."""
    first, *rest = FACTS.write.requests
    for requests in (
        (*rest, first),
        (replace(first, status=None), *rest),
        (replace(first, status=503), *rest),
        (first, *(replace(one, condition=None) for one in rest)),
    ):
        assert false_claims(replace(FACTS, write=replace(FACTS.write, requests=requests)))
