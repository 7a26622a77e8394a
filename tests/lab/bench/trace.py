"""Trace one cold run of the sample job: its phases, its requests to S3, the classes that Java loads, its CPU time.

Java's class log slows the run by some percent, so the time of a traced run is no benchmark result.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scripts.emulator.rie import cpu_s
from scripts.local.sample import put_sample
from soal.invocation.report import report_of
from soal.local.names import BUCKETS, CHECKPOINTS
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.bench.phases import Facts, Request, classes_of, phases_of
from tests.lab.bench.start import new_table, soal_event, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import psutil

    from scripts.local.function import Function
    from tests.lab.bench.phases import Phase, Who

__all__ = ["ColdRun", "lines_of", "measure"]

_LOG: Final = "classes.log"
_IN_CONTAINER: Final = "/soal-trace"
_INITIALISED: Final = "INIT RTDONE("
_WHO: Final[Mapping[Who, str]] = {"handler": "awslambdaric", "java": "io.soal.host.Host", "python": "driver/server.py"}


@dataclass(frozen=True, slots=True)
class ColdRun:
    """A cold run. `total_ms`: from the event to the answer. `initialised_ms`: when Lambda's init phase ended.

    `cpu_s`: CPU seconds of each process that is alive at the end, with the children that it has waited for. `classes`:
    by origin (`tests.lab.bench.phases.Loaded`).
    """

    image: str | None
    total_ms: float
    initialised_ms: float
    cpu_s: Mapping[Who, float]
    classes: Mapping[str, int]
    phases: tuple[Phase, ...]
    requests: tuple[Request, ...]


def measure(image: str | None, function: Callable[[Mapping[str, str]], Function]) -> ColdRun:
    """Run the sample job once; `function` makes SoAL's function, given the variables that reach the S3.

    Raises `Problem` if the job fails.
    """
    with _folder() as folder, EmbeddedS3(buckets=BUCKETS) as s3:
        put_sample(s3.observer())
        seen: list[tuple[int, str]] = []
        log = folder if image is None else Path(_IN_CONTAINER)
        option = f"-Xlog:class+load=info:file={log / _LOG}:timemillis"
        variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "JAVA_TOOL_OPTIONS": option}
        ours = replace(
            function(variables),
            on_line=lambda line: seen.append((time.monotonic_ns(), line)),
            mounts=() if image is None else (f"{folder}:{_IN_CONTAINER}",),
        )
        with ours.emulator() as emulator:
            # Java uses the wall clock, S3's trace the monotonic one.
            sent_ns, sent_epoch_ms = time.monotonic_ns(), time.time_ns() / 1e6
            report = succeeded(report_of(emulator.invoke(soal_event(new_table())), ours.timeout_s))
            answered_ms = _since_ms(sent_ns, time.monotonic_ns())
            processes = {who: one for one in emulator.processes() if (who := _who(one)) is not None}
            starts = {who: _started_ms(one, sent_ns) for who, one in processes.items()}
            used_s = {who: cpu_s(one) for who, one in processes.items()}
        requests = tuple(
            Request(
                one.operation,
                one.bucket,
                one.key_class,
                _since_ms(sent_ns, one.started_ns),
                _since_ms(sent_ns, one.ended_ns),
            )
            for one in sorted(s3.trace(), key=lambda one: one.started_ns)
        )
        with (folder / _LOG).open(encoding="utf-8", errors="replace") as lines:
            classes = classes_of(lines, sent_epoch_ms)
    initialised_ms = next((_since_ms(sent_ns, at_ns) for at_ns, line in seen if _INITIALISED in line), 0.0)
    phases = phases_of(Facts(starts, classes, requests, answered_ms))
    origins = sorted({one.origin for one in classes})
    counted = {origin: sum(one.origin == origin for one in classes) for origin in origins}
    return ColdRun(image, float(report.duration_ms), initialised_ms, used_s, counted, phases, requests)


def lines_of(run: ColdRun, about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the run as lines of JSON: one about the run, beginning with `about`, then the phases, then the requests."""
    whole = {name: value for name, value in asdict(run).items() if name not in {"phases", "requests"}}
    yield json.dumps({"kind": "run", **about, **whole})
    for phase in run.phases:
        yield json.dumps({"kind": "phase", **asdict(phase)})
    for request in run.requests:
        yield json.dumps({"kind": "request", **asdict(request)})


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder that the container's user may write to."""
    with tempfile.TemporaryDirectory(prefix="soal-trace-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def _who(process: psutil.Process) -> Who | None:
    words = process.cmdline()
    if not words or words[0].endswith("rie"):  # the handler's name is an argument of the emulator, too
        return None
    line = " ".join(words)
    return next((who for who in ("java", "python", "handler") if _WHO[who] in line), None)


def _started_ms(process: psutil.Process, sent_ns: int) -> float:
    """Return when a process began; the kernel reports it in hundredths of a second since boot."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    ticks = int(stat.rpartition(")")[2].split()[19])
    monotonic_ahead_ns = time.monotonic_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return _since_ms(sent_ns, ticks * 10_000_000 + monotonic_ahead_ns)


def _since_ms(sent_ns: int, at_ns: int) -> float:
    return round((at_ns - sent_ns) / 1e6, 1)
