"""Run both groups in the same three processes, on one embedded S3, and judge them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backends.s3 import S3Backend
from safewriter.objects.s3 import S3ObjectStore
from scripts.provision.place import ROOT
from soal.testing.s3 import EmbeddedS3, Match, Rule
from tests.lab.processes import Child, answers
from tests.lab.turns.events import Group, TurnEvent, Window, read_events, write_events
from tests.lab.turns.job import LOCK, Task
from tests.lab.turns.verdict import Verdict, judge
from tests.lab.turns.workload import JOBS, Row, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from soal.testing.s3.exchange import Reply, Request

__all__ = ["EVENTS", "GROUPS", "Outcome", "demo"]

EVENTS: Final = "events.jsonl"
GROUPS: Final[tuple[Group, ...]] = ("without", "with")
_LAKE, _CHECKPOINTS, _LOCKS = "soal-lake", "soal-checkpoints", "soal-locks"
_MEETING_S: Final = 60.0
_READING_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both groups' events and figures."""

    events: tuple[Window | TurnEvent, ...]
    verdicts: dict[Group, Verdict]

    @property
    def is_as_it_must_be(self) -> bool:
        """Whether turns avoided the conflicts that occurred without them, with no overlap, in order, every row once."""
        plain, turns = self.verdicts["without"], self.verdicts["with"]
        is_exact = turns.is_exact and turns.kept == turns.taken_up > 0
        return plain.conflicts > 0 and turns.conflicts == turns.overlaps == 0 and turns.in_order and is_exact


class _Meeting:
    """Holds a request until a second one arrives; then both are applied."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)

    def __call__(self, request: Request) -> Reply | Callable[[], Reply]:
        request.body()
        return lambda: self._apply(request)

    def _apply(self, request: Request) -> Reply:
        with suppress(threading.BrokenBarrierError):  # the second never arrived, so no conflict will be counted
            self._barrier.wait(_MEETING_S)
        return request.apply()


def demo(folder: Path, *, seed: int = 1, rounds: int = 8, says: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run each group over `rounds` rounds of input; events, inputs and logs go to `folder`.

    Raises RuntimeError if a stream ends for another reason than a conflict.
    """
    work = workload(seed, rounds)
    with EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS, _LOCKS)) as s3:
        # The table is created as version 0, the first rows are version 1, and Mutation and TTL meet at version 2.
        meeting = Match(frozenset({"PutObject"}), bucket=_LAKE, key=r"^without/_delta_log/0{19}2\.json$")
        s3.wire.add(Rule(meeting, _Meeting(), times=2))
        environ = {
            **os.environ,
            **s3.environment(),
            "SW_CHECKPOINT_BUCKET": _CHECKPOINTS,
            "SW_LOCKS": f"s3://{_LOCKS}/locks",
        }
        says("three Spark drivers start")
        events: list[Window | TurnEvent] = []
        verdicts: dict[Group, Verdict] = {}
        with _streams(environ, folder) as streams:
            for group in GROUPS:
                says(f"group {group} the coordinator: {rounds} batches for each of {', '.join(JOBS)}")
                place = folder / group
                work.write(place / "input")
                _deltalake(environ, "create", group)
                for stream in streams:
                    stream.ask(**asdict(Task(group, f"s3a://{_LAKE}/{group}", str(place))))
                answers(streams)
                own: list[Window | TurnEvent] = [event for job in JOBS for event in read_events(place / f"{job}.jsonl")]
                if group == "with":
                    own += _turns(s3)
                rows = [Row(*row) for row in json.loads(_deltalake(environ, "read", group))]
                verdicts[group] = judge(group, work, own, rows)
                events += sorted(own, key=lambda event: event.began_ms)
    write_events(events, folder / EVENTS)
    return Outcome(tuple(events), verdicts)


@contextmanager
def _streams(environ: Mapping[str, str], folder: Path) -> Iterator[list[Child]]:
    """Start the three processes, which end with the block, or at once if it fails. Their logs go to `folder`."""
    with ExitStack() as stack:
        streams = []
        for job in JOBS:
            variables = {**environ, "SOAL_RUN_KEY": f"{job}-{folder.name}"}
            streams.append(Child("tests.lab.turns.job", (job,), folder, variables=variables))
            stack.push(streams[-1])
        try:
            answers(streams)
            yield streams
        except BaseException:
            for stream in streams:
                stream.kill()
            raise


def _turns(s3: EmbeddedS3) -> list[TurnEvent]:
    """Return the turns in the lock's record."""
    stored = S3Backend(S3ObjectStore(s3.observer(), _LOCKS, "locks")).read(LOCK)
    if stored is None:
        raise RuntimeError("the lock has no record")
    return [
        TurnEvent.model_validate(
            {
                "group": "with",
                "job": turn.job,
                "token": turn.token,
                "began_ms": turn.since_ms,
                "ended_ms": turn.until_ms,
                "end": turn.end,
            }
        )
        for turn in stored.record.history
    ]


def _deltalake(environ: Mapping[str, str], action: str, group: Group) -> str:
    """Create a group's table, or read it, with another implementation than the writer's."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "tests.lab.turns.reader", action, f"s3://{_LAKE}/{group}"],
        env={**environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=_READING_S,
    ).stdout
