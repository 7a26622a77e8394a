"""Measure the first guarded row of a started Spark that a memory snapshot is copied from: from the event to the commit.

CRIU saves the program of a MicroVM after its warm-up, and starts copies of it in containers. In a MicroVM a copy's
memory is mapped, where CRIU reads all of it first (`restore_ms`, not part of the other times). Copies of machines may
get the same random bytes from their kernels, where these share one kernel. After the commit Java waits three seconds
for the processes that CRIU has started anew, and a machine would not have.

The same job in the same program without its warm-up runs beside.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable

from handler.outcome.result import Result
from handler.outcome.state import State
from handler.runs.store import result_key
from scripts.emulator.microvm import Hooks
from scripts.provision.place import ROOT
from soal.home import Home
from soal.testing.s3 import EmbeddedS3
from tests.lab.bench.containers import OWN, Container, ContainerError, Disk, Network, root_file_system

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPConnection

__all__ = ["RestoredCost", "measure"]

_SCRIPTS: Final = "scripts"
_LAKE: Final = "lake"
_CHECKPOINTS: Final = "checkpoints"
_PORT: Final = 9000
_READY_S: Final = 900.0
_JOB_S: Final = 120.0
_POLL_S: Final = 0.05
_JOB: Final = """
from pyspark.sql import SparkSession
from safewriter import SafeWriter
spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, "s3a://lake/rows") as block:
    spark.range(1).write.format("delta").mode("append").save(block.table)
    block.success()
"""


@dataclass(frozen=True, slots=True)
class RestoredCost:
    """Milliseconds: medians of `jobs` jobs of a kind, with the least and the most. `commit_ms` is from the event to the
    commit in the table's log; `ratio`: the cold jobs' median by this one's.
    """

    start: str
    jobs: int
    restore_ms: float
    commit_ms: float
    commit_ms_min: float
    commit_ms_max: float
    ratio: float
    snapshot_mb: float


@dataclass(frozen=True, slots=True)
class _Job:
    restore_ms: float
    commit_ms: float
    run_id: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where containers start: in a folder, on an S3."""

    folder: Path
    root: Path
    s3: EmbeddedS3
    criu: str

    def container(self, disk: Disk, network: Network, *words: str) -> Container:
        program = (str(Home.of().python), "-P", "-m", "tests.lab.bench.restored_program", "--port", str(_PORT))
        bundle = self.folder / f"soal-{uuid.uuid4().hex}"
        return Container(
            bundle,
            self.root,
            disk,
            network,
            self.criu,
            (*program, "--s3-python", sys.executable, *words),
            self._variables,
        )

    @property
    def _variables(self) -> Mapping[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": OWN,
            **self.s3.environment(),
            "AWS_ENDPOINT_URL_LAMBDA_MICROVMS": "http://127.0.0.1:1",  # nobody ends the MicroVM but we
            "SW_CHECKPOINT_BUCKET": _CHECKPOINTS,
            "SOAL_TIMEOUT_S": "900",
            "SOAL_MEMORY_MB": "3008",
        }


@dataclass(frozen=True, slots=True)
class _Program(Hooks):
    container: Container

    def connection(self) -> HTTPConnection:
        return self.container.connection(_PORT)

    def tail(self) -> str:
        return self.container.tail()


def measure(
    criu: str, rounds: int = 5, warm_ups: int = 16, progress: Callable[[int], None] = lambda _: None
) -> tuple[RestoredCost, ...]:
    """In each of `rounds` rounds run a cold job, one in a copy, and one in each of two copies at once.

    Raises `ContainerError` if a job fails, does not find the started Spark, or shares an id with another one, or if the
    table does not hold each job's row once; `EmulatorError` if the program refuses a hook.
    """
    kinds: dict[str, list[_Job]] = {"cold": [], "a copy": [], "two copies at once": []}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-restored-")))
        s3 = stack.enter_context(EmbeddedS3(buckets=(_SCRIPTS, _LAKE, _CHECKPOINTS), unlistable=(_CHECKPOINTS,)))
        s3.observer().put_object(Bucket=_SCRIPTS, Key="job.py", Body=_JOB.encode())
        place = _Place(folder, stack.enter_context(root_file_system(folder)), s3, criu)
        saved, image = stack.enter_context(Disk(folder)), folder / "image"
        networks = [stack.enter_context(Network(s3.port)) for _ in range(2)]
        # CRIU leaves a network locked, whose processes it has saved.
        with Network(s3.port) as network, place.container(saved, network, "--rounds", str(warm_ups)) as container:
            container.start()
            _Program(container).build(within_s=_READY_S)
            container.save(image)
        saved.release()
        snapshot_mb = sum(file.stat().st_size for file in image.iterdir()) / 2**20
        for number in range(rounds):
            with Disk(folder) as disk, place.container(disk, networks[0], "--rounds", "0") as container:
                container.start()
                _Program(container).until_ok("ready", _READY_S)
                kinds["cold"].append(_job(container, s3, 0.0, warm=False))
            kinds["a copy"] += _in_copies(place, image, saved, networks[:1])
            kinds["two copies at once"] += _in_copies(place, image, saved, networks)
            progress(number + 1)
        _check(s3, [job for jobs in kinds.values() for job in jobs])
    cold_ms = statistics.median(job.commit_ms for job in kinds["cold"])
    return tuple(_cost(start, jobs, cold_ms, snapshot_mb) for start, jobs in kinds.items())


def _in_copies(place: _Place, image: Path, saved: Disk, networks: list[Network]) -> list[_Job]:
    with contextlib.ExitStack() as stack:
        disks = [stack.enter_context(Disk(place.folder, saved)) for _ in networks]
        copies = [stack.enter_context(place.container(*pair)) for pair in zip(disks, networks, strict=True)]
        restored_ms = []
        for copy in copies:
            began_ns = time.monotonic_ns()
            copy.restore(image)
            restored_ms.append((time.monotonic_ns() - began_ns) / 1e6)
        with ThreadPoolExecutor(len(copies)) as pool:
            return list(pool.map(lambda copy, ms: _job(copy, place.s3, ms, warm=True), copies, restored_ms))


def _job(container: Container, s3: EmbeddedS3, restore_ms: float, *, warm: bool) -> _Job:
    """Run a job; the trace of S3 tells when its commit was there."""
    microvm_id = f"mvm-{uuid.uuid4()}"
    event = json.dumps({"entryPoint": f"s3://{_SCRIPTS}/job.py", "clientToken": microvm_id})
    event_ns = time.monotonic_ns()
    _Program(container).run(event, microvm_id)
    key = result_key(microvm_id)
    until_s = time.monotonic() + _JOB_S
    while key not in s3.keys(_CHECKPOINTS):
        if time.monotonic() > until_s:
            raise ContainerError(f"there is no result after {_JOB_S:.0f} s:\n{container.tail()}")
        time.sleep(_POLL_S)
    body = s3.observer().get_object(Bucket=_CHECKPOINTS, Key=key)["Body"].read()
    result = Result.model_validate_json(body)
    if result.state is not State.SUCCESS or result.warm_start is not warm:
        raise ContainerError(f"the job ended as {result.state}, warm start {result.warm_start}:\n{container.tail()}")
    log = f"rows/_delta_log/{result.writes[0].version:020}.json"
    committed = [one.ended_ns for one in s3.trace() if one.key == log and one.operation == "PutObject"]
    return _Job(restore_ms, (committed[0] - event_ns) / 1e6, str(result.run_id))


def _check(s3: EmbeddedS3, jobs: list[_Job]) -> None:
    """Raise `ContainerError` unless each job has an id of its own, and its row is in the table once."""
    options = {**s3.environment(), "AWS_ENDPOINT_URL": s3.endpoint, "AWS_ALLOW_HTTP": "true"}
    table = DeltaTable(f"s3://{_LAKE}/rows", storage_options=options)
    rows, files = table.to_pyarrow_table().num_rows, table.file_uris()
    if not len({job.run_id for job in jobs}) == len(set(files)) == rows == len(jobs):
        raise ContainerError(f"{len(jobs)} jobs have left {rows} rows in {len(files)} files")


def _cost(start: str, jobs: list[_Job], cold_ms: float, snapshot_mb: float) -> RestoredCost:
    commit_ms = [job.commit_ms for job in jobs]
    return RestoredCost(
        start=start,
        jobs=len(jobs),
        restore_ms=statistics.median(job.restore_ms for job in jobs),
        commit_ms=statistics.median(commit_ms),
        commit_ms_min=min(commit_ms),
        commit_ms_max=max(commit_ms),
        ratio=cold_ms / statistics.median(commit_ms),
        snapshot_mb=snapshot_mb,
    )
