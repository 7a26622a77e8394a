"""Carry out one run of the experiment: a process of its own, on an emulated S3 that kills it at an exact request."""

from __future__ import annotations

import signal
import tempfile
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from safewriter.settle.recovery import Cause
from soal.testing.s3.rules import Kill, Rule
from tests.lab.experiment.ground import CHECKPOINTS, Ground
from tests.lab.experiment.job import Order
from tests.lab.experiment.judging import Found, outcome_of, truth_of
from tests.lab.experiment.record import RunRecord, Span
from tests.lab.experiment.tables import LAKE, source_uri, table_of
from tests.lab.processes import JobProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from soal.testing.s3.exchange import Exchange
    from tests.lab.experiment.data import Dataset
    from tests.lab.experiment.plan import Cell, Run
    from tests.lab.experiment.tables import ExperimentTable, Place
    from tests.lab.processes import Ended

__all__ = ["Laboratory"]

_SAID_MAX: Final = 4000
_QUIET_TIMEOUT_S: Final = 60.0


class Laboratory:
    """A context manager: one S3 with the files to append. Several runs may be carried out at once."""

    def __init__(self, datasets: Mapping[str, Dataset]) -> None:
        self._datasets = datasets
        self._ground = Ground()

    def __enter__(self) -> Self:
        self._ground.__enter__()
        for name, dataset in self._datasets.items():
            key = source_uri(name).removeprefix(f"s3a://{LAKE}/")
            self._ground.s3.observer().put_object(Bucket=LAKE, Key=key, Body=dataset.body)
        return self

    def __exit__(self, *_: object) -> None:
        self._ground.__exit__()

    def carry_out(self, run: Run, *, keeps_requests: bool) -> RunRecord:
        """Make the table, start the process, kill it if planned, recover if it was guarded, and read the table.

        Raises `RuntimeError` if a process hangs.
        """
        cell, dataset = run.cell, self._datasets[run.cell.dataset]
        with tempfile.TemporaryDirectory(dir=self._ground.folder) as folder:
            place = self._ground.place(f"{run.id}-{uuid.uuid4().hex[:8]}", folder)
            table = table_of(cell.table_format, place)
            table.make(dataset.base)
            rows_before = table.rows()
            order = Order(
                source=source_uri(cell.dataset),
                ddl=dataset.ddl,
                table=table.name,
                table_format=cell.table_format,
                guarded=cell.use_safe_writer,
                fails=cell.fails,
                settings=dict(table.settings),
            )
            ended, killed = self._process(run, place, table, order)
            at_end = table.view()
            bytes_at_end = table.size_of(at_end.orphans)
            verdict, settle_ms = self._recover(cell, place.prefix, table.name)
            after = table.view() if cell.use_safe_writer else at_end
            found = Found(
                code=ended.code,
                missed=bool(cell.kill_phase) and not killed,
                guarded=cell.use_safe_writer,
                fails=cell.fails,
                added=table.rows() - rows_before,
                expected=dataset.rows,
                verdict=verdict,
            )
            outcome, truth = outcome_of(found), truth_of(found)
            exchanges = [
                one
                for one in self._ground.s3.trace()
                if ended.began_ns <= one.started_ns
                and one.ended_ns <= ended.ended_ns
                # A checkpoint's key names no table; only a run that has the machine alone is sure to own them all.
                and (place.prefix in one.key or (cell.is_timed and one.bucket == CHECKPOINTS))
            ]
            is_as_meant = truth in ("success", "rollback_success") or (killed and ended.code == -signal.SIGKILL)
            return RunRecord(
                run_id=run.id,
                table_format=cell.table_format,
                dataset=cell.dataset,
                kill_phase=cell.kill_phase,
                use_safe_writer=cell.use_safe_writer,
                outcome=outcome,
                duration_ms=round((ended.ended_ns - ended.began_ns) / 1e6, 1),
                returncode=ended.code,
                timestamp=datetime.now(UTC),
                cell=cell.name,
                fails=cell.fails,
                truth=truth,
                killed=killed,
                rows_before=rows_before,
                rows_added=found.added,
                rows_expected=found.expected,
                orphans=len(after.orphans),
                orphan_bytes=table.size_of(after.orphans),
                orphans_at_kill=len(at_end.orphans),
                orphan_bytes_at_kill=bytes_at_end,
                verdict=verdict,
                settle_ms=settle_ms,
                **{name: ended.told.get(name) for name in ("session_ms", "write_ms", "end_ms")},
                gap_ms=_gap_ms(exchanges),
                requests=[_span(one, ended.began_ns) for one in exchanges] if keeps_requests else [],
                error=None if is_as_meant else (ended.out + ended.errors)[-_SAID_MAX:],
            )

    def _process(self, run: Run, place: Place, table: ExperimentTable, order: Order) -> tuple[Ended, bool]:
        process = JobProcess("tests.lab.experiment.job", order, self._ground.variables(place.prefix), place.folder)
        rule = None
        if run.cell.kill_phase:
            kill = Kill("before" if run.cell.kill_phase == "data" else "torn", process.signal)
            rule = self._ground.s3.wire.add(Rule(table.boundary(run.cell.kill_phase), kill))
        ended = process.wait()
        # Requests of other runs may be pending, too.
        self._ground.wait_until_quiet(_QUIET_TIMEOUT_S)
        return ended, rule is not None and rule.hits > 0

    def _recover(self, cell: Cell, run_key: str, table: str) -> tuple[str | None, float | None]:
        """Settle and clean up like the function's handler; return the guard's verdict and the milliseconds."""
        if not cell.use_safe_writer:
            return None, None
        document = self._ground.document(run_key, table, cell.table_format)
        if document is None:
            return None, 0.0
        recovery = self._ground.recovery
        began = time.monotonic()
        recovery.settle(document.write_key, Cause.KILLED)
        recovery.clean(document.write_key)
        settle_ms = round((time.monotonic() - began) * 1000, 1)
        settled = self._ground.document(run_key, table, cell.table_format)
        return None if settled is None else str(settled.status), settle_ms


def _gap_ms(exchanges: list[Exchange]) -> float | None:
    """Return the time between the answers to the last PUT of data and to the commit's PUT; None without a commit."""
    puts = [one for one in exchanges if one.operation in ("PutObject", "CompleteMultipartUpload") and one.status == 200]
    data = [one.ended_ns for one in puts if one.key_class == "data"]
    kinds = ("delta_log/commit", "iceberg/metadata")
    commits = [one.ended_ns for one in puts if one.key_class in kinds and data and one.ended_ns > data[0]]
    return round((min(commits) - max(data)) / 1e6, 1) if commits else None


def _span(one: Exchange, began_ns: int) -> Span:
    return Span(
        operation=one.operation,
        key_class=one.key_class,
        began_ms=round((one.started_ns - began_ns) / 1e6, 1),
        ended_ms=round((one.ended_ns - began_ns) / 1e6, 1),
    )
