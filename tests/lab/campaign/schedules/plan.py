"""A schedule, drawn from its seed: who takes part, when, on which clock, and which faults hit whom.

It is a list of parts, each drawn by itself, so that a part can be left out and all others stay as they are: by that a
failing schedule is shrunk, and the name of what remains replays it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from tests.lab.campaign.schedules.simulation import SECOND
from tests.lab.campaign.schedules.wire import Fault, Hit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["Batch", "Faults", "Member", "Plan"]

Kind = Literal["job", "sweeper", "reader", "neighbour", "eraser"]
Script = Literal["right", "raises", "raises late", "forgets"]
Faults = tuple[tuple[str, int, Hit], ...]
_NAME: Final = re.compile(r"schedule-(\d+)(?:-([0-9a-f]+))?")
_MINUTE: Final = 60 * SECOND
_PUTS: Final = {"commit": 3, "document": 3, "note": 2, "data": 2, "marker": 1, "lease": 3, "delete": 2}
_READS: Final = {"read": 12, "list": 4}
"""The kinds of requests, and among how many of them the one that is hit is drawn."""
_WEIGHTS: Final = ("commit",) * 6 + ("document",) * 4 + ("note", "data", "marker", "lease", "delete") + ("read",) * 5
_DEATHS: Final = (Fault.KILL, Fault.KILL_LATE, Fault.KILL_LATE, Fault.KILL_AFTER, Fault.FREEZE, Fault.FREEZE_AFTER)
_TROUBLES: Final = (Fault.LOST, Fault.LATE, Fault.GONE, Fault.BUSY, Fault.DENIED, Fault.CONFLICT, Fault.SLOW)
_SKEWS_MS: Final = (0, 0, 0, 0, -1_500, 4_000, -90_000, 300_000, -7_200_000, 90_000_000)


@dataclass(frozen=True, slots=True)
class Batch:
    """A run's write. `success`: it counts with `success()` only. `removes`: its statement also removes a file, so that
    nobody can undo it. `files`: how many it adds.
    """

    success: bool = False
    removes: bool = False
    files: int = 1


@dataclass(frozen=True, slots=True)
class Member:
    """A process. `start`: microseconds. `skew_ms`: what its clock is ahead of S3's. `slow`: a factor of its requests'
    times. `faults`: kind and number of the request that each hits.

    Of a job: its `batch`; `again`: it starts although its caller knows that the batch is there, as an event that is
    delivered twice. `work`: how long its statement takes, and `deadline`: how long it has (0: no deadline), in
    microseconds. `handler`: a process beside it renews its lease, and settles behind it; `sandbox`: a kill of the job
    kills that, too. Of a neighbour: `reads`: its commit looks at the table. An eraser deletes settled documents.
    """

    name: str
    kind: Kind
    start: int
    skew_ms: int = 0
    slow: float = 1.0
    faults: Faults = ()
    batch: int = 0
    again: bool = False
    script: Script = "right"
    work: int = 0
    deadline: int = 0
    handler: bool = False
    handler_faults: Faults = ()
    sandbox: bool = False
    reads: bool = False

    def __str__(self) -> str:
        """The member in words."""
        plain = Member(self.name, self.kind, 0)
        skipped = ("name", "kind", "start", "faults", "handler_faults")
        odd = [
            f"{name}={getattr(self, name)}"
            for name in self.__slots__
            if name not in skipped and getattr(self, name) != getattr(plain, name)
        ]
        hits = [
            f"{who}'s {kind} {number}: {hit.fault.value} ({hit.time / SECOND:.1f} s, {hit.count} times)"
            for who, faults in (("its", self.faults), ("the handler", self.handler_faults))
            for kind, number, hit in faults
        ]
        return "; ".join((f"{self.name} at {self.start / SECOND:.3f} s", *odd, *hits)).replace("its's", "its")


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule. `exists`: the table is there before all. `without`: the numbers of the parts that are left out."""

    seed: int
    exists: bool
    batches: tuple[Batch, ...]
    members: tuple[Member, ...]
    without: frozenset[int] = frozenset()

    @classmethod
    def of(cls, seed: int) -> Self:
        """Draw the schedule of a seed."""
        random = Random(f"plan {seed}")  # noqa: S311 - a seed must repeat it
        batches = tuple(_batch(random) for _ in range(random.choice((1, 1, 1, 2, 3))))
        jobs = [_job(random, number, len(batches)) for number in range(random.choice((2, 2, 3, 4)))]
        others = [
            *_others(random, "sweeper", random.choice((0, 1, 1, 2)), 5 * _MINUTE),
            *_others(random, "reader", random.choice((1, 2, 3)), 3 * _MINUTE),
            *_others(random, "neighbour", random.choice((0, 0, 1, 2)), _MINUTE),
            # Without its document nothing tells whether success() was called, so that a person has to decide.
            *_others(random, "eraser", 0 if any(one.success for one in batches) else random.randrange(4) // 3, _MINUTE),
        ]
        return cls(seed, random.random() < 0.7, batches, (*jobs, *others))

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the schedule of a name. Raises `ValueError`."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is no schedule; one is schedule-4711, or schedule-4711-3f without some parts")
        mask = int(match[2] or "0", 16)
        whole = cls.of(int(match[1]))
        if mask.bit_length() > len(whole.parts):
            raise ValueError(f"schedule-{match[1]} has {len(whole.parts)} parts, and {name!r} leaves out a later one")
        return whole.leaving_out({number for number in range(mask.bit_length()) if mask >> number & 1})

    @property
    def name(self) -> str:
        """The name by which it is replayed."""
        mask = sum(1 << number for number in self.without)
        return f"schedule-{self.seed}" + (f"-{mask:x}" if mask else "")

    @property
    def parts(self) -> tuple[tuple[Any, ...], ...]:
        """The parts of the whole schedule: each member, then what is odd about it."""
        return _parts(self.of(self.seed).members)

    def leaving_out(self, parts: Collection[int]) -> Self:
        """Return the same schedule without more of its parts."""
        whole, without = self.of(self.seed), self.without | frozenset(parts)
        gone = {self.parts[number] for number in without}
        members = tuple(_left(one, gone) for one in whole.members if (one.name,) not in gone)
        return replace(whole, members=members, without=without)


_ODD: Final[dict[str, Any]] = {
    "skew_ms": 0,
    "slow": 1.0,
    "deadline": 0,
    "script": "right",
    "work": 0,
    "handler": False,
    "sandbox": False,
    "again": False,
}
"""What is no part of its own in a member that has it."""


def _parts(members: Sequence[Member]) -> tuple[tuple[Any, ...], ...]:
    odd = [
        (one.name, *what)
        for one in members
        for what in (
            *(("job", kind, number) for kind, number, _ in one.faults),
            *(("handler", kind, number) for kind, number, _ in one.handler_faults),
            *((name,) for name, plain in _ODD.items() if getattr(one, name) != plain),
        )
    ]
    return (*((one.name,) for one in members), *odd)


def _left(member: Member, gone: Collection[tuple[Any, ...]]) -> Member:
    name = member.name

    def left(where: str, faults: Faults) -> Faults:
        return tuple(one for one in faults if (name, where, *one[:2]) not in gone)

    plain = {what: value for what, value in _ODD.items() if (name, what) in gone}
    faults, handler_faults = left("job", member.faults), left("handler", member.handler_faults)
    return replace(member, faults=faults, handler_faults=handler_faults, **plain)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def _batch(random: Random) -> Batch:
    success = random.random() < 0.4
    return Batch(success, not success and random.random() < 0.2, random.choice((1, 1, 2)))


def _job(random: Random, number: int, batches: int) -> Member:
    # Close behind each other, or when a lease is over, or when a deadline and its grace are.
    within = random.choice((SECOND // 2, SECOND // 2, 3 * SECOND, 40 * SECOND, 5 * _MINUTE))
    handler = random.random() < 0.5
    scripts: tuple[Script, ...] = (*("right",) * 7, "raises", "raises late", "raises late", "forgets")
    return Member(
        f"job{number}",
        "job",
        random.randrange(within),
        skew_ms=random.choice(_SKEWS_MS),
        slow=random.choice((1.0, 1.0, 1.0, 4.0)),
        faults=_faults(random, random.choice((0, 1, 1, 2, 2, 3))),
        batch=number % batches,
        again=random.random() < 0.3,
        script=random.choice(scripts),
        work=random.choice((0, 0, SECOND, 25 * SECOND)),
        deadline=random.choice((0, 0, 20 * SECOND, 60 * SECOND, 600 * SECOND)),
        handler=handler,
        handler_faults=_faults(random, random.choice((0, 0, 1))) if handler else (),
        sandbox=handler and random.random() < 0.5,
    )


def _others(random: Random, kind: Kind, count: int, within: int) -> list[Member]:
    return [
        Member(
            f"{kind}{number}",
            kind,
            random.randrange(random.choice((10 * SECOND, 50 * SECOND, within))),
            skew_ms=random.choice(_SKEWS_MS) if kind == "sweeper" else 0,
            slow=random.choice((1.0, 1.0, 4.0)),
            faults=_faults(random, random.choice((0, 0, 1)) + (kind == "sweeper")),
            reads=kind == "neighbour" and random.random() < 0.3,
        )
        for number in range(count)
    ]


def _faults(random: Random, count: int) -> Faults:
    found = {one[:2]: one for one in (_fault(random) for _ in range(count))}
    return tuple(found[place] for place in sorted(found))


def _fault(random: Random) -> tuple[str, int, Hit]:
    kind = random.choice((*_WEIGHTS, "list"))
    number = random.randrange({**_PUTS, **_READS}[kind])
    longest = random.choice((2 * SECOND, 30 * SECOND, 5 * _MINUTE, 60 * _MINUTE, 20_000 * _MINUTE))
    time = random.randrange(longest)
    if random.random() < 0.5:
        return kind, number, Hit(random.choice(_DEATHS), time)
    # The product tries a request three times, Java five times.
    return kind, number, Hit(random.choice(_TROUBLES), time, random.choice((1, 1, 1, 3, 5, 12)))
