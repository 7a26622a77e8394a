"""The child's output, line by line: into the log while it runs, and its last lines into the result."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from handler.redaction.redact import LineRedactor, Redactor
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

__all__ = ["JobLog"]

_CHUNK: Final = 65_536
_LINE_MAX: Final = 8_192
_EMF_LINE_MAX: Final = 262_144  # CloudWatch's own bound on an event
_TAIL_LINES: Final = 50
_TAIL_LINE_MAX: Final = 1_000
_LOGGED_MAX: Final = 16 * 1024 * 1024
_JAVA_FRAME: Final = re.compile(rb"\s+(?:at [\w$.<>/]+\(|\.\.\. \d+ more)")
_OUT_OF_MEMORY: Final = b"java.lang.OutOfMemoryError"


class JobLog:
    """Takes the bytes of a stream apart into lines.

    `log` receives each line without its secrets, `metric` each line in CloudWatch's embedded metric format.
    After `logged_max` bytes lines are no longer logged, only counted, so that a flood costs neither money nor time;
    metrics and the tail continue.
    """

    def __init__(
        self,
        redactor: Redactor,
        *,
        log: Callable[[str], None],
        metric: Callable[[str], None],
        logged_max: int = _LOGGED_MAX,
    ) -> None:
        self._redact = LineRedactor(redactor)
        self._redact_tail = LineRedactor(redactor)
        self._mask_metric = redactor.metric
        self._log = log
        self._metric = metric
        self._logged_left = logged_max
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self.lines_dropped = 0
        """Lines that were not logged, because there were too many."""
        self.saw_out_of_memory = False
        """The Java machine said that its heap is full."""

    def pump(self, stream: BinaryIO) -> None:
        """Read until end-of-file."""
        rest = b""
        cut = False  # the line that `rest` begins was longer than allowed, and its beginning has been taken
        while chunk := stream.read1(_CHUNK):  # type: ignore[attr-defined]  # a buffered pipe
            *lines, rest = (rest + chunk).split(b"\n")
            if lines and not cut and self._is_plain(chunk):
                self._skip(lines)
                lines = []
            for line in lines:
                if not cut:
                    self._line(line)
                cut = False
            if cut:
                rest = b""
            elif len(rest) > _EMF_LINE_MAX:
                self._line(rest)
                rest, cut = b"", True
        if rest:
            self._line(rest)

    def _is_plain(self, chunk: bytes) -> bool:
        """Tell whether the lines of a chunk need no check: none is logged, and none is a metric or part of a key."""
        return self._logged_left <= 0 and b'"_aws"' not in chunk and b"PRIVATE KEY" not in chunk

    def _skip(self, lines: list[bytes]) -> None:
        """Take many lines at once."""
        self.lines_dropped += len(lines)
        for line in lines[-_TAIL_LINES:]:
            self._remember(line.rstrip())
        self.saw_out_of_memory = self.saw_out_of_memory or any(_OUT_OF_MEMORY in line for line in lines)

    def tail(self) -> tuple[str, ...]:
        """Return the last lines, cut and without their secrets."""
        return tuple(_cut(self._redact_tail(_text(line)), _TAIL_LINE_MAX) for line in self._tail)

    def _line(self, raw: bytes) -> None:
        line = raw.rstrip()
        if b'"_aws"' in line and (metric := _metric(line)) is not None:
            masked = self._mask_metric(metric)
            self._metric(_text(line) if masked == metric else json.dumps(masked, ensure_ascii=False))
            return
        self.saw_out_of_memory = self.saw_out_of_memory or _OUT_OF_MEMORY in line
        if not line:
            return
        self._remember(line)
        if self._logged_left <= 0:
            self.lines_dropped += 1
            return
        self._logged_left -= len(line)
        self._log(_cut(self._redact(_text(line[: 2 * _LINE_MAX])), _LINE_MAX))
        if self._logged_left <= 0:
            self._log("too much output: further lines are not logged, only the last ones go into the result")

    def _remember(self, line: bytes) -> None:
        """Keep the line for the tail, except Java's stack frames: the log has them, and the causes are worth more.

        A private key whose first line leaves the tail is still one.
        """
        if not line or _JAVA_FRAME.match(line):
            return
        if len(self._tail) == _TAIL_LINES:
            self._redact_tail(_text(self._tail[0][:_LINE_MAX]) if b"PRIVATE KEY-----" in self._tail[0] else "")
        self._tail.append(line[: 2 * _LINE_MAX])


def _metric(line: bytes) -> dict[str, Any] | None:
    try:
        document = parsed(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("_aws"), dict) else None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").replace("\0", "�")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text)} characters)"
