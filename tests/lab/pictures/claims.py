"""The claims of the pictures, checked against the facts before anything is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scripts.demonstration.stage import Claim
from tests.lab.pictures.facts import MOMENTS
from tests.lab.pictures.steps import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.pictures.facts import Facts, KilledJob, Moment, TracedWrite

__all__ = ["claims_of"]

_WHEN: Final[dict[Moment, str]] = {
    "marked": "before the claim",
    "written": "before the commit",
    "landed": "after the commit",
    "settled": "after the verdict",
}


def claims_of(facts: Facts) -> tuple[Claim, ...]:
    """Return every claim of the two pictures, and whether it is true."""
    return (
        *_of_the_write(facts.write),
        *_without_guard(facts),
        *(claim for moment in MOMENTS for claim in _with_guard(facts, facts.kill(moment, is_guarded=True))),
    )


def _of_the_write(write: TracedWrite) -> Iterator[Claim]:
    try:
        steps = steps_of(write)
    except ValueError as error:
        yield Claim(f"the write has each request of the protocol once: {error}", holds=False)
        return
    chosen = steps.in_order()
    places = [write.requests.index(one) for one in chosen]
    yield Claim("the requests come in the protocol's order", holds=places == sorted(places))
    answered = all(one.status is not None and one.status // 100 == 2 for one in chosen)
    yield Claim("S3 has done each of them", holds=answered)
    creates = [one.condition for one in (steps.claim, steps.commit)]
    yield Claim("claim and commit are PUT with If-None-Match: *", holds=creates == ["If-None-Match: *"] * 2)
    yield Claim("the verdict is PUT with If-Match", holds=str(steps.verdict.condition).startswith("If-Match: "))


def _without_guard(facts: Facts) -> Iterator[Claim]:
    written, landed = (facts.kill(moment, is_guarded=False) for moment in ("written", "landed"))
    batch = facts.batch_rows
    yield Claim(
        "without the guard, a kill before the commit leaves orphans, and no row",
        holds=_grown(written) == (0, batch) and written.killed.orphans > 0,
    )
    yield Claim("its retry leaves these orphans", holds=written.retried.orphans == written.killed.orphans)
    yield Claim(
        "without the guard, a kill after the commit leaves the batch, and its retry doubles it",
        holds=_grown(landed) == (batch, 2 * batch),
    )
    recorded = [state.status for kill in (written, landed) for state in (kill.killed, kill.retried)]
    yield Claim("nothing records which of the two it was", holds=recorded == [None] * 4)


def _with_guard(facts: Facts, kill: KilledJob) -> Iterator[Claim]:
    batch, name = facts.batch_rows, f"guarded, killed {_WHEN[kill.moment]}"
    lands = kill.moment in {"landed", "settled"}
    statuses = {"marked": None, "written": "in_progress", "landed": "in_progress", "settled": "committed"}
    yield Claim(f"{name}: the batch is {'' if lands else 'not '}in the table", holds=_grown(kill)[0] == batch * lands)
    yield Claim(f"{name}: the checkpoint says so", holds=kill.killed.status == statuses[kill.moment])
    yield Claim(f"{name}: the write is announced", holds=kill.killed.markers == 1)
    yield Claim(
        f"{name}: there are {'' if kill.moment == 'written' else 'no '}orphans",
        holds=(kill.killed.orphans > 0) == (kill.moment == "written"),
    )
    yield Claim(f"{name}: after the retry the batch is in the table once", holds=_grown(kill)[1] == batch)
    yield Claim(
        f"{name}: the retry succeeds, and says committed",
        holds=(kill.retry, kill.retried.status) == ("SUCCESS", "committed"),
    )
    epoch = 2 if kill.moment == "written" else 1
    said = "the retry claims the write that it has rolled back" if epoch > 1 else "the retry rolls nothing back"
    yield Claim(f"{name}: {said}", holds=kill.retried.epoch == epoch)
    if lands:
        yield Claim(f"{name}: the retry writes no file", holds=kill.retried.files == kill.killed.files)
    yield Claim(f"{name}: after the retry there is no orphan", holds=kill.retried.orphans == 0)


def _grown(kill: KilledJob) -> tuple[int, int]:
    """Return by how many rows the table grew after the kill, and after the retry."""
    return kill.killed.rows - kill.before.rows, kill.retried.rows - kill.before.rows
