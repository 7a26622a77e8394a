"""Pass the child's output on line by line: to the log while the child runs, and its last lines to the result."""

from __future__ import annotations

import json
import re
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from handler.redaction.effort import WITHHELD, Effort
from handler.redaction.redact import PrivateKeys, Redactor
from handler.redaction.secret_forms import MASK
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import BinaryIO

__all__ = ["JobLog", "is_java_frame"]

_CHUNK: Final = 65_536
_EMF_LINE_MAX: Final = 262_144  # CloudWatch's limit for an event
_EVENT_MAX_BYTES: Final = 250_000
"""Of a logged line as JSON; the rest of the event is the handler's."""
_ESCAPE_MAX_BYTES: Final = 6
_CUT: Final = "… (the line is longer)"
_METRIC_DEPTH_MAX: Final = 16
"""CloudWatch's own fields have five levels; code that walks a metric recurses once a level."""
_TAIL_LINES: Final = 50
_TAIL_LINE_MAX: Final = 1_000
_TAIL_LINE_KEPT: Final = 4 * _TAIL_LINE_MAX
"""More than `Redactor.shortened` searches, so that it sees that the line was cut."""
_LOGGED_MAX: Final = 16 * 1024 * 1024
_TAIL_MAX_S: Final = 2.0
_MASKING_MAX_S: Final = 30.0
"""CPU time in a run: 16 MiB of ordinary lines take less, lines that are crafted to be slow much more."""
_SERVICES: Final = "aws/"
"""The namespaces of AWS's own metrics."""
_SOURCE: Final = "source"
"""The field whose value `job` marks the job's own lines in the log (`observability.log_job_line`)."""
_JAVA_FRAME: Final = re.compile(rb"\s+(?:at [\w$.<>/]+\(|at \.\.\. run in |\.\.\. \d+ more)")
_OUT_OF_MEMORY: Final = b"java.lang.OutOfMemoryError"


def is_java_frame(line: bytes) -> bool:
    """Return whether a line is a frame of a stack as Java prints it, or tells how many are left out."""
    return _JAVA_FRAME.match(line) is not None


class JobLog:
    """Splits a stream of bytes into lines.

    `log` receives each line with its secrets masked; `metric` each line in CloudWatch's embedded metric format that has
    a metric and only namespaces of the job, so neither `namespace`, which is the handler's, nor one of AWS. After
    `logged_max` bytes lines are only counted, so that a flood costs neither money nor time; the tail continues, and
    metrics until they reach the same size. `effort` limits the search for secrets in lines and metrics, and the tail
    has a limit of its own: a text that takes too long is withheld.
    """

    def __init__(
        self,
        redactor: Redactor,
        *,
        log: Callable[[str], None],
        metric: Callable[[str], None],
        namespace: str = "SoAL",
        logged_max: int = _LOGGED_MAX,
        effort: Effort | None = None,
    ) -> None:
        self._redactor = replace(redactor, effort=effort or Effort(_MASKING_MAX_S))
        self._keys = PrivateKeys()
        self._log = log
        self._metric = metric
        self._namespace = namespace
        self._logged_left = self._metrics_left = logged_max
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self.lines_dropped = 0
        """The number of lines not logged: there were too many, they took too long, or the search for secrets failed."""
        self.is_whole = False
        """Whether the output was read to its end."""
        self.saw_out_of_memory = False
        """Whether the JVM has printed that its heap is full."""

    def pump(self, stream: BinaryIO) -> None:
        """Read until end-of-file, whatever a line holds: if this stopped, the job would block on a full pipe."""
        rest = b""
        cut = False  # whether `rest` continues a line that was too long and whose beginning has been handled
        while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]  # a buffered pipe
            data = rest + chunk
            *lines, rest = data.split(b"\n")
            if lines and not cut and self._is_plain(data):
                self._skip(lines)
                lines = []
            for line in lines:
                if not cut:
                    self._line(line)
                cut = False
            if cut:
                rest = b""
            elif len(rest) > _EMF_LINE_MAX:
                self._line(rest, is_cut=True)
                rest, cut = b"", True
        if rest:
            self._line(rest)
        self.is_whole = True

    def end_search(self) -> None:
        """Withhold all lines that are not searched yet, so that the pump reads the rest at once; not the tail."""
        self._redactor.effort.end()

    def _is_plain(self, data: bytes) -> bool:
        """Return whether lines need no check: none is logged, and none is a metric or part of a key."""
        return self._logged_left <= 0 and b'"_aws"' not in data and b"PRIVATE KEY" not in data

    def _skip(self, lines: list[bytes]) -> None:
        """Count many lines at once, and remember the last ones."""
        self.lines_dropped += len(lines)
        for line in lines[-_TAIL_LINES:]:
            with suppress(Exception):  # it is counted already
                self._remember(line.rstrip())
        self.saw_out_of_memory = self.saw_out_of_memory or any(_OUT_OF_MEMORY in line for line in lines)

    def tail(self) -> tuple[str, ...]:
        """Return the last lines, truncated and masked. The answer waits for this, so the search has little time; it has
        that in any case, since the job's error is there.
        """
        redactor = replace(self._redactor, effort=self._redactor.effort.anew(_TAIL_MAX_S))
        # A copy: the pump may still run.
        return tuple(redactor.shortened(line, _TAIL_LINE_MAX) for line in tuple(self._tail))

    def _line(self, raw: bytes, *, is_cut: bool = False) -> None:
        try:
            self._take(raw.rstrip(), is_cut=is_cut)
        except Exception:  # noqa: BLE001 - the pump must continue
            self.lines_dropped += 1

    def _take(self, line: bytes, *, is_cut: bool) -> None:
        if b'"_aws"' in line and (metric := self._emf(line)) is not None:
            self._send(metric)
            return
        self.saw_out_of_memory = self.saw_out_of_memory or _OUT_OF_MEMORY in line
        if not line:
            return
        text = self._remember(line)
        if self._logged_left <= 0:
            self.lines_dropped += 1
            return
        self._logged_left -= len(line)
        masked = self._redactor.shortened(text, _EVENT_MAX_BYTES, is_cut=is_cut)
        self.lines_dropped += masked == WITHHELD
        self._log(_fitting(masked, is_whole=not is_cut))
        if self._logged_left <= 0:
            self._log("too much output: further lines are not logged, only the last ones go into the result")

    def _send(self, metric: str) -> None:
        if self._metrics_left <= 0:
            self.lines_dropped += 1
            return
        self._metrics_left -= len(metric)
        self._metric(metric)

    def _emf(self, line: bytes) -> str | None:
        """Return a line as a metric with secrets masked; None if it is no metric, or the job may not have it.

        The metric is serialised anew, so that CloudWatch reads what was checked here, even if a name occurs twice. Its
        `source` marks it as the job's, so that it cannot pass for a line of the handler or of Lambda.
        """
        document = _metric(line)
        if document is None or not self._may_have(document):
            return None
        metric = json.dumps({**self._redactor.metric(document), _SOURCE: "job"})
        return metric if len(metric) <= _EMF_LINE_MAX and WITHHELD not in metric else None

    def _may_have(self, document: Mapping[str, Any]) -> bool:
        directives = document["_aws"].get("CloudWatchMetrics")
        if not isinstance(directives, list) or not all(isinstance(directive, dict) for directive in directives):
            return False
        spaces = [directive.get("Namespace") for directive in directives]
        names = [name for directive in directives for name in _names(directive)]
        return (
            all(isinstance(space, str) and self._is_of_job(space.strip().casefold()) for space in spaces)
            and any(name in document for name in names)
            and _SOURCE not in (*names, *(name for directive in directives for name in _dimensions(directive)))
        )

    def _is_of_job(self, name: str) -> bool:
        return name != self._namespace.casefold() and not name.startswith(_SERVICES)

    def _remember(self, line: bytes) -> str:
        """Return the line's text. Keep it for the tail unless it is a Java stack frame: the log has those."""
        text = line.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        text = MASK if self._keys.is_inside(text) else text
        if line and not is_java_frame(line):
            self._tail.append(text[:_TAIL_LINE_KEPT])
        return text


def _fitting(text: str, *, is_whole: bool) -> str:
    """Return a line that fits into one event; one that is cut says so."""
    if len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) > _EVENT_MAX_BYTES:
        return f"{text[: _EVENT_MAX_BYTES // _ESCAPE_MAX_BYTES]}{_CUT}"
    return text if is_whole else f"{text}{_CUT}"


def _metric(line: bytes) -> dict[str, Any] | None:
    try:
        document = parsed(line)
    except ValueError:
        return None
    is_metric = isinstance(document, dict) and isinstance(document.get("_aws"), dict)
    return document if is_metric and _is_shallow(document) else None


def _is_shallow(document: dict[str, Any]) -> bool:
    level: list[object] = [document]
    for _ in range(_METRIC_DEPTH_MAX):
        level = [member for value in level for member in _members(value)]
    return not level


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _names(directive: Mapping[str, Any]) -> list[str]:
    """Return the names of the metrics that a directive declares."""
    metrics = directive.get("Metrics")
    names = [metric.get("Name") for metric in metrics if isinstance(metric, dict)] if isinstance(metrics, list) else []
    return [name for name in names if isinstance(name, str)]


def _dimensions(directive: Mapping[str, Any]) -> list[object]:
    sets = directive.get("Dimensions")
    return [name for names in sets if isinstance(names, list) for name in names] if isinstance(sets, list) else []
