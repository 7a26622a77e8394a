"""Measure a verdict on a dead Delta write without Java: a write whose commit never landed, and one that is undone.

The settler is warm, like the handler's supervisor, or a fresh process. The table has a short or a long log, and few or
many files besides the write's, in SeaweedFS: how it lists is not ours.
"""

from __future__ import annotations

import json
import statistics
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from safewriter.block.claim import Claimer
from safewriter.deadline import epoch_ms
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.tables.session import TableState
from tests.lab.bench.requests import Noted, verdict_ns
from tests.lab.bench.settle_server import CHECKPOINTS, LAKE, served
from tests.lab.bench.settler import alone_in_row, settled_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from safewriter.record.document import Checkpoint
    from scripts.emulator.seaweedfs import SeaweedFS
    from tests.lab.bench.settler import Measured

__all__ = ["DeltaSettleRow", "measure_delta"]

_WARM_UP: Final = 3
_CHECKSUM: Final = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2},"metadata":{"configuration":{}}}'
"""What Spark writes beside each version."""
_INFO: Final = '{"commitInfo":{"operation":"WRITE","operationParameters":{"mode":"Append"},"isBlindAppend":true}}'


@dataclass(frozen=True, slots=True)
class DeltaSettleRow:
    """Medians in milliseconds over `rounds` dead writes, and of a third as many in processes of their own.

    `verdict_ms`: until S3 has stored the verdict. `done_ms`: until the attempt's files and markers are deleted, too;
    `done_cpu_ms`: the settler's CPU time, user and system. `done_ratio`: `done_ms` by that on the smallest table.
    `fresh_ms`, `fresh_cpu_ms`: `done` since the start of a process that does nothing else; `ready_ms` and
    `ready_cpu_ms` of them until Python, the libraries and a client of S3 are there. `requests`, `listings`,
    `received_bytes`: those of the last of these processes.
    """

    outcome: str
    versions: int
    files: int
    rounds: int
    verdict_ms: float
    verdict_ms_max: float
    done_ms: float
    done_cpu_ms: float
    fresh_ms: float
    fresh_cpu_ms: float
    ready_ms: float
    ready_cpu_ms: float
    requests: int
    listings: int
    received_bytes: int
    done_ratio: float = 1.0


def measure_delta(
    rounds: int = 20,
    versions: Sequence[int] = (10, 10_000),
    files: Sequence[int] = (100, 100_000),
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[DeltaSettleRow, ...]:
    """Settle `rounds` dead writes of each kind, on a small and on a large table; `progress` gets the number of rows."""
    rows: list[DeltaSettleRow] = []
    with served() as server:
        for length, count in zip(versions, files, strict=True):
            bench = _Bench(server, length, count)
            for undone in (False, True):
                row = bench.row(rounds, undone=undone)
                first = next((one for one in rows if one.outcome == row.outcome), row)
                rows.append(replace(row, done_ratio=row.done_ms / first.done_ms))
                progress(len(rows))
    return tuple(rows)


class _Bench:
    def __init__(self, server: SeaweedFS, versions: int, files: int) -> None:
        self.server = server
        self.versions = versions
        self.files = files
        self.name = f"t{versions}"
        self.table = canonical_table(f"s3a://{LAKE}/{self.name}")
        self.lake = table_store(str(self.table))
        self.checkpoints = Checkpoints(open_store(Location(CHECKPOINTS)))
        self._fill("_delta_log/{:020}.json", versions, _INFO + "\n")
        self._fill("_delta_log/{:020}.crc", versions, _CHECKSUM)
        self._fill("part-{:05}-c000.snappy.parquet", files, "rows")
        self.head = versions - 1

    def _fill(self, name: str, count: int, body: str, ahead_s: int = 0) -> None:
        keys = [f"{self.name}/{name.format(number)}" for number in range(count)]
        self.server.load(LAKE, keys, body.encode(), ahead_s=ahead_s)

    def row(self, rounds: int, *, undone: bool) -> DeltaSettleRow:
        recovery = Recovery(self.checkpoints, table_store, clock=epoch_ms)
        verdicts, done, cpu = [], [], []
        noted = Noted()
        for turn in range(-_WARM_UP, rounds):
            key = self._die(undone=undone)
            noted.requests.clear()
            began, spent = time.monotonic_ns(), time.process_time()
            settled = recovery.settle(key, Cause.KILLED, Evidence(1, requests_ended=True))
            ended, spent = time.monotonic_ns(), time.process_time() - spent
            self._check(None if settled is None else settled.document)
            self.head += 2 if undone else 1  # the commit and its revert, or the fence
            if turn >= 0:
                verdicts.append((verdict_ns(noted.requests, undone=undone) - began) / 1e6)
                done.append((ended - began) / 1e6)
                cpu.append(spent * 1000)
        alone = [self._alone(undone=undone) for _ in range(max(1, rounds // 3))]
        return DeltaSettleRow(
            outcome="undone" if undone else "never landed",
            versions=self.versions,
            files=self.files,
            rounds=rounds,
            verdict_ms=statistics.median(verdicts),
            verdict_ms_max=max(verdicts),
            done_ms=statistics.median(done),
            done_cpu_ms=statistics.median(cpu),
            **alone_in_row(alone),
        )

    def _alone(self, *, undone: bool) -> Measured:
        found = settled_alone(CHECKPOINTS, self._die(undone=undone), {})
        self.head += 2 if undone else 1
        if found.status != Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not rolled back: {found}")
        return found

    @staticmethod
    def _check(document: Checkpoint | None) -> None:
        if document is None or document.status is not Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not rolled back: {document}")

    def _die(self, *, undone: bool) -> str:
        """Claim a write behind a version of Spark's, and put a file of it; with `undone` its commit lands, too.

        Return its key.
        """
        self.head += 1
        self.lake.put(f"_delta_log/{self.head:020}.json", f"{_INFO}\n".encode())
        self.lake.put(f"_delta_log/{self.head:020}.crc", _CHECKSUM.encode())
        write = Write(Run(uuid.uuid4().hex, "bench", "bench", "bench"), self.table, "delta", None)
        point = CommitPoint.SUCCESS if undone else CommitPoint.WRITE
        attempt = Attempt.draw()
        recovery = Recovery(self.checkpoints, table_store, clock=epoch_ms)
        claimer = Claimer(self.checkpoints, recovery, write, attempt, point, None)
        claimer.announce()
        claimer.claim(TableState(self.head, "id", (), {}))
        name = f"{attempt.file_prefix(write.key, 1)}part-00000-c000.snappy.parquet"
        # Usually younger than the version before it, by the second; a clean-up reads more of the log if it is not.
        self._fill(name, 1, "rows", ahead_s=1)
        if undone:
            add = {"path": name, "partitionValues": {}, "size": 4, "modificationTime": 1, "dataChange": True}
            txn = {"appId": write.key, "version": 1, "lastUpdated": 1}
            lines = [_INFO, json.dumps({"txn": txn}), json.dumps({"add": add})]
            self.lake.put(f"_delta_log/{self.head + 1:020}.json", "\n".join(lines).encode())
        return write.key
