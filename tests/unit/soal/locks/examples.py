"""The record of a lock with an example of everything, shown in docs/guides/coordination.md."""

from __future__ import annotations

from typing import Final

from safewriter.coordination.backend import Stored
from safewriter.coordination.record import End, Holder, Job, OpenWrite, PastTurn, Record, Waiter

__all__ = ["STORED"]

_DAY_MS: Final = 1_795_132_800_000  # 2026-11-20, midnight


def _at(hour: int, minute: int, second: int = 0) -> int:
    return _DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000


STORED: Final = Stored(
    Record(
        "ENGAGEMENT_HVS_DATA",
        token=3,
        tickets=4,
        completions=1,
        holder=Holder(
            "Mutation",
            "5f2a",
            3,
            30.0,
            _at(8, 4, 10),
            "mutation-0804",
            beat=3,
            writes=(OpenWrite("s3://soal-checkpoints", "6d1f0c2b9a", 1),),
        ),
        queue=(Waiter("TTL", "77b1", 4, _at(8, 4, 40), 0.5), Waiter("Ingestion", "0c9e", 3, _at(8, 4, 31), 0.5)),
        unsettled=(OpenWrite("s3://soal-checkpoints", "1b7e44d0aa", 1),),
        jobs={
            "Ingestion": Job(registered=1, completed=1),
            "Mutation": Job("Ingestion", registered=3, is_done=False, left=1),
            "TTL": Job("Mutation"),
        },
        history=(
            PastTurn("Ingestion", 1, _at(7, 59, 2), _at(8, 0, 9), End.COMPLETED, "ingestion-0759"),
            PastTurn("Mutation", 2, _at(8, 1), _at(8, 4, 9), End.EXPIRED, "mutation-0801"),
        ),
    ),
    version=1,
)
