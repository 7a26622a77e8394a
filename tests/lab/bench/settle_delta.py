"""Measure a verdict on a dead Delta write without Java: a write whose commit never landed, and one that is undone.

The settler is warm, like the handler's supervisor, or a fresh process. The table has a short or a long log, and few or
many files besides the write's. The S3, in its own process, takes half a second to list a page of 100,000 keys: for
large tables, compare the requests.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from safewriter.block.claim import Claimer
from safewriter.deadline import epoch_ms
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.tables.session import TableState
from tests.lab.processes import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from safewriter.record.document import Checkpoint

__all__ = ["DeltaSettleRow", "measure_delta"]

_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WARM_UP: Final = 3
_CHECKSUM: Final = '{"protocol":{"minReaderVersion":1,"minWriterVersion":2},"metadata":{"configuration":{}}}'
"""What Spark writes beside each version."""
_INFO: Final = '{"commitInfo":{"operation":"WRITE","operationParameters":{"mode":"Append"},"isBlindAppend":true}}'


@dataclass(frozen=True, slots=True)
class DeltaSettleRow:
    """Medians in milliseconds over `rounds` dead writes; `requests`: those of one settling, with its clean-up.

    `verdict_ms`: until S3 has stored the verdict. `done_ms`: until the attempt's files and markers are deleted, too.
    `fresh_ms`: both, in a process that does nothing else, with the loading of its libraries.
    """

    outcome: str
    versions: int
    files: int
    rounds: int
    verdict_ms: float
    verdict_ms_max: float
    done_ms: float
    fresh_ms: float
    requests: int


def measure_delta(
    rounds: int = 20,
    versions: Sequence[int] = (10, 10_000),
    files: Sequence[int] = (100, 100_000),
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[DeltaSettleRow, ...]:
    """Settle `rounds` dead writes of each kind, on a small and on a large table; `progress` gets the number of rows."""
    rows = []
    for length, count in zip(versions, files, strict=True):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
            s3 = stack.enter_context(Child("tests.lab.bench.s3_server", (_LAKE, _CHECKPOINTS), folder))
            stack.enter_context(patch.dict(os.environ, s3.ready["environment"]))
            bench = _Bench(s3, length, count)
            for undone in (False, True):
                rows.append(bench.row(rounds, undone=undone))
                progress(len(rows))
    return tuple(rows)


class _Bench:
    def __init__(self, s3: Child, versions: int, files: int) -> None:
        self.s3 = s3
        self.versions = versions
        self.files = files
        self.table = canonical_table(f"s3a://{_LAKE}/t")
        self.lake = table_store(str(self.table))
        self.checkpoints = Checkpoints(open_store(Location(_CHECKPOINTS)))
        self._fill("t/_delta_log/{:020}.json", versions, _INFO + "\n")
        self._fill("t/_delta_log/{:020}.crc", versions, _CHECKSUM)
        self._fill("t/part-{:05}-c000.snappy.parquet", files, "")
        self.head = versions - 1

    def _fill(self, name: str, count: int, body: str, ahead_s: int = 0) -> None:
        self.s3.ask(fill=name, bucket=_LAKE, count=count, body=body, ahead_s=ahead_s)
        self.s3.answer()

    def row(self, rounds: int, *, undone: bool) -> DeltaSettleRow:
        recovery = Recovery(self.checkpoints, table_store, clock=epoch_ms)
        verdicts, done, trace = [], [], list[Any]()
        for turn in range(-_WARM_UP, rounds):
            key = self._die(undone=undone)
            self.s3.ask(latency_ms=0)
            self.s3.answer()
            began = time.monotonic_ns()
            settled = recovery.settle(key, Cause.KILLED, Evidence(1, requests_ended=True))
            ended = time.monotonic_ns()
            trace = self._trace()
            self._check(None if settled is None else settled.document)
            self.head += 2 if undone else 1  # the commit and its revert, or the fence
            if turn >= 0:
                verdicts.append((_verdict(trace, undone=undone) - began) / 1e6)
                done.append((ended - began) / 1e6)
        return DeltaSettleRow(
            outcome="undone" if undone else "never landed",
            versions=self.versions,
            files=self.files,
            rounds=rounds,
            verdict_ms=statistics.median(verdicts),
            verdict_ms_max=max(verdicts),
            done_ms=statistics.median(done),
            fresh_ms=self._fresh_ms(undone=undone),
            requests=len(trace),
        )

    def _fresh_ms(self, *, undone: bool) -> float:
        key = self._die(undone=undone)
        line = [sys.executable, "-P", "-m", "tests.lab.bench.settler", _CHECKPOINTS, key]
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(line, env={**os.environ, **path}, capture_output=True, text=True, check=True)
        self.head += 2 if undone else 1
        found = json.loads(done.stdout)
        if found["status"] != Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not rolled back: {found}")
        return float(found["verdict_ms"])

    @staticmethod
    def _check(document: Checkpoint | None) -> None:
        if document is None or document.status is not Status.ROLLED_BACK:
            raise RuntimeError(f"the write was not rolled back: {document}")

    def _die(self, *, undone: bool) -> str:
        """Claim a write and put a file of it; with `undone` its commit lands, too. Return its key."""
        write = Write(Run(uuid.uuid4().hex, "bench", "bench", "bench"), self.table, "delta", None)
        point = CommitPoint.SUCCESS if undone else CommitPoint.WRITE
        attempt = Attempt.draw()
        recovery = Recovery(self.checkpoints, table_store, clock=epoch_ms)
        claimer = Claimer(self.checkpoints, recovery, write, attempt, point, None)
        claimer.announce()
        claimer.claim(TableState(self.head, "id", (), {}))
        name = f"{attempt.file_prefix(write.key, 1)}part-00000-c000.snappy.parquet"
        # Usually younger than the version before it, by the second; a clean-up reads more of the log if it is not.
        self._fill(f"t/{name}", 1, "rows", ahead_s=1)
        if undone:
            add = {"path": name, "partitionValues": {}, "size": 4, "modificationTime": 1, "dataChange": True}
            txn = {"appId": write.key, "version": 1, "lastUpdated": 1}
            lines = [_INFO, json.dumps({"txn": txn}), json.dumps({"add": add})]
            self.lake.put(f"_delta_log/{self.head + 1:020}.json", "\n".join(lines).encode())
        return write.key

    def _trace(self) -> list[Any]:
        self.s3.ask(trace=True)
        return list(self.s3.answer()["trace"])


def _verdict(trace: list[Any], *, undone: bool) -> int:
    """Return when S3 stored the verdict: an undo writes the document twice."""
    puts = [
        ended for operation, _, key, _, ended in trace if operation == "PutObject" and key.startswith("checkpoints/")
    ]
    return int(puts[1 if undone else 0])
