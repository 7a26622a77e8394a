"""The figures of the report: how runs ended, the gap, one write by its requests, verdicts, times of recovery."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from tests.lab.experiment.plan import DATASETS, FORMATS
from tests.lab.pictures.png import Pixels
from tests.lab.pictures.svg import WIDTH, Canvas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.lab.experiment.record import RunRecord, Span, Truth
    from tests.lab.pictures.svg import Anchor, Tone

__all__ = ["Figure", "figures"]

_LEFT, _RIGHT = 300, WIDTH - 90
_TOP, _LANE, _BAR = 84, 26, 16
_TONES: Final[dict[Truth, Tone]] = {
    "success": "ok",
    "rollback_success": "blue",
    "committed_when_killed": "muted",
    "visible_error": "warn",
    "silent_loss": "bad",
    "false_verdict": "bad",
    "damaged": "bad",
    "not_killed": "warn",
}
_OF_FORMAT: Final[dict[str, Tone]] = {"delta": "blue", "iceberg": "ok"}
_PLOT_HEIGHT: Final = 240
_TIMELINES: Final = tuple(
    f"{cell}-{guard}"
    for one in FORMATS
    for cell, guard in ((f"A-{one}-22k-baseline", "plain"), (f"O-{one}-22k-baseline", "guarded"))
)


class Drawing(Protocol):
    """What `Canvas` and `Pixels` have in common."""

    def text(
        self, words: str, x: float, y: float, *, size: float = 12, tone: Tone = "ink", anchor: Anchor = "start",
        bold: bool = False,
    ) -> None: ...  # fmt: skip

    def box(self, x: float, y: float, width: float, height: float, *, tone: Tone, opacity: float = 1) -> None: ...

    def line(self, start: tuple[float, float], end: tuple[float, float], *, tone: Tone, width: float = 1) -> None: ...


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure under its name, in both forms."""

    name: str
    title: str
    svg: str
    png: bytes


def figures(records: Sequence[RunRecord], whence: str) -> tuple[Figure, ...]:
    """Return those for which there are runs; `whence` says where these come from."""
    made = (
        ("outcomes", "How the runs ended, by what readers find", _outcomes(records)),
        ("gap", "The gap between the last data and the commit, by the requests", _gaps(records)),
        ("timeline", "One write by its requests: without a guard, and guarded", _timelines(records)),
        ("verdicts", "The exit code's word, and what readers find", _verdicts(records)),
        ("recovery", "The recovery of a dead guarded write: verdict and clean table", _recovery(records)),
    )
    return tuple(_figure(name, title, whence, *drawn) for name, title, drawn in made if drawn is not None)


_Drawn = tuple[int, str, "Callable[[Drawing], None]"]
"""The height, the text for those who do not see it, and who draws it."""


def _figure(
    name: str, title: str, whence: str, height: int, description: str, draw: Callable[[Drawing], None]
) -> Figure:
    canvas, pixels = Canvas(height, title, description), Pixels(height)
    for drawing in (canvas, pixels):
        drawing.text(title, 24, 36, size=18, bold=True)
        drawing.text(whence, 24, 58, tone="muted")
        draw(drawing)
    return Figure(name, title, canvas.document(), pixels.document())


def _outcomes(records: Sequence[RunRecord]) -> _Drawn | None:
    cells = sorted({record.cell for record in records})
    counts = {cell: Counter(record.truth for record in records if record.cell == cell) for cell in cells}
    if not cells:
        return None

    def draw(on: Drawing) -> None:
        for number, cell in enumerate(cells):
            y, x = _TOP + number * _LANE, float(_LEFT)
            total = sum(counts[cell].values())
            on.text(cell, _LEFT - 10, y + 12, anchor="end")
            for truth, count in sorted(counts[cell].items()):
                width = (_RIGHT - _LEFT) * count / total
                on.box(x, y, width, _BAR, tone=_TONES[truth], opacity=0.85)
                x += width
            on.text(str(total), _RIGHT + 8, y + 12, size=11, tone="muted")
        _legend(
            on,
            _TOP + len(cells) * _LANE + 22,
            [(truth, tone) for truth, tone in _TONES.items() if _has(records, truth)],
        )

    said = "; ".join(
        f"{cell}: {', '.join(f'{count} {truth}' for truth, count in counts[cell].items())}" for cell in cells
    )
    return _TOP + len(cells) * _LANE + 50, said, draw


def _gaps(records: Sequence[RunRecord]) -> _Drawn | None:
    found = {
        (one, size): gaps
        for one in FORMATS
        for size in DATASETS
        if (
            gaps := [
                record.gap_ms
                for record in records
                if record.table_format == one and record.dataset == size and record.gap_ms is not None
                and not record.use_safe_writer and not record.kill_phase
            ]
        )
    }  # fmt: skip
    if not found:
        return None
    most = max(max(gaps) for gaps in found.values())

    def draw(on: Drawing) -> None:
        for number, ((one, size), gaps) in enumerate(found.items()):
            y = _TOP + number * _LANE
            on.text(f"{one}, {DATASETS[size]:,} rows", _LEFT - 10, y + 12, anchor="end")
            middle = statistics.median(gaps)
            on.box(_LEFT, y, _across(middle, most), _BAR, tone=_OF_FORMAT[one], opacity=0.85)
            ends = (_LEFT + _across(min(gaps), most), _LEFT + _across(max(gaps), most))
            on.line((ends[0], y + _BAR / 2), (ends[1], y + _BAR / 2), tone="ink", width=1.5)
            on.text(f"{middle:.0f} ms", max(ends[1], _LEFT + _across(middle, most)) + 8, y + 12, size=11, tone="muted")

    said = "; ".join(f"{one}, {size}: median {statistics.median(gaps):.0f} ms" for (one, size), gaps in found.items())
    return _TOP + len(found) * _LANE + 24, said, draw


def _timelines(records: Sequence[RunRecord]) -> _Drawn | None:
    shown = [
        record
        for cell in _TIMELINES
        for record in records
        if record.cell == cell and record.requests
    ][:4]  # fmt: skip
    if not shown:
        return None
    lanes = [(record, [span for span in record.requests if _writes(span)]) for record in shown]
    lanes = [(record, spans) for record, spans in lanes if spans]
    heights = [34 + len(spans) * 18 for _, spans in lanes]

    def draw(on: Drawing) -> None:
        y = _TOP
        for (record, spans), height in zip(lanes, heights, strict=True):
            on.text(record.cell, 24, y + 12, bold=True)
            first, last = spans[0].began_ms, max(span.ended_ms for span in spans)
            for number, span in enumerate(spans):
                at = y + 22 + number * 18
                x = _LEFT + _across(span.began_ms - first, last - first)
                on.text(f"{span.operation} {span.key_class}", _LEFT - 10, at + 11, anchor="end", size=11)
                tone: Tone = "ok" if span.key_class in ("delta_log/commit", "iceberg/metadata") else "blue"
                on.box(x, at, max(2.0, _across(span.ended_ms - span.began_ms, last - first)), 12, tone=tone)
                on.text(f"{span.ended_ms - first:.0f} ms", min(x + 30, _RIGHT + 12), at + 11, size=10, tone="muted")
            y += height

    return _TOP + sum(heights) + 20, f"{len(lanes)} writes, each PUT with its time", draw


def _verdicts(records: Sequence[RunRecord]) -> _Drawn | None:
    rows = sorted({(record.use_safe_writer, _end(record)) for record in records})
    kinds = [truth for truth in _TONES if _has(records, truth)]
    if not rows:
        return None
    width = (_RIGHT - _LEFT) / len(kinds)

    def draw(on: Drawing) -> None:
        for place, truth in enumerate(kinds):
            on.text(
                truth.replace("_", " "), _LEFT + (place + 0.5) * width, _TOP, size=11, anchor="middle", tone="muted"
            )
        for number, (guarded, phase) in enumerate(rows):
            y = _TOP + 12 + number * 34
            on.text(f"{'guarded' if guarded else 'plain'}, kill: {phase}", _LEFT - 10, y + 20, anchor="end")
            found = [record for record in records if record.use_safe_writer is guarded and (_end(record)) == phase]
            for place, truth in enumerate(kinds):
                count = sum(record.truth == truth for record in found)
                on.box(
                    _LEFT + place * width + 1,
                    y,
                    width - 2,
                    30,
                    tone=_TONES[truth],
                    opacity=0.06 + 0.8 * count / len(found),
                )
                on.text(str(count), _LEFT + (place + 0.5) * width, y + 20, anchor="middle")

    return _TOP + 12 + len(rows) * 34 + 20, "Runs by kill and guard, and by what readers find", draw


def _recovery(records: Sequence[RunRecord]) -> _Drawn | None:
    times = {
        one: sorted(
            record.settle_ms for record in records if record.table_format == one and record.killed and record.settle_ms
        )
        for one in FORMATS
    }
    times = {one: found for one, found in times.items() if found}
    if not times:
        return None
    most = max(found[-1] for found in times.values())

    def draw(on: Drawing) -> None:
        bottom = _TOP + _PLOT_HEIGHT
        on.line((_LEFT, bottom), (_RIGHT, bottom), tone="muted")
        on.line((_LEFT, _TOP), (_LEFT, bottom), tone="muted")
        for share in (0.5, 1.0):
            on.text(f"{share:.0%}", _LEFT - 10, bottom - share * _PLOT_HEIGHT + 4, anchor="end", size=11, tone="muted")
        for part in (0.0, 0.5, 1.0):
            on.text(
                f"{part * most:.0f} ms",
                _LEFT + _across(part * most, most),
                bottom + 18,
                anchor="middle",
                size=11,
                tone="muted",
            )
        for number, (one, found) in enumerate(times.items()):
            for start, end in _steps(found, most, bottom):
                on.line(start, end, tone=_OF_FORMAT[one], width=2)
            on.text(one, 24, _TOP + 20 + number * 20, tone=_OF_FORMAT[one], bold=True)

    said = "; ".join(
        f"{one}: median {statistics.median(found):.0f} ms, at most {found[-1]:.0f} ms" for one, found in times.items()
    )
    return _TOP + _PLOT_HEIGHT + 44, said, draw


def _steps(
    found: Sequence[float], most: float, bottom: float
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the lines of an empirical distribution."""
    x, y = float(_LEFT), bottom
    for number, ms in enumerate(found, start=1):
        to_x, to_y = _LEFT + _across(ms, most), bottom - number / len(found) * _PLOT_HEIGHT
        yield (x, y), (to_x, y)
        yield (to_x, y), (to_x, to_y)
        x, y = to_x, to_y


def _end(record: RunRecord) -> str:
    return record.kill_phase or ("fails" if record.fails else "none")


def _legend(on: Drawing, y: float, words: list[tuple[str, Tone]]) -> None:
    x = 24.0
    for word, tone in words:
        on.box(x, y - 10, 12, 12, tone=tone, opacity=0.85)
        on.text(word.replace("_", " "), x + 18, y, size=11)
        x += 40 + 7 * len(word)


def _has(records: Sequence[RunRecord], truth: str) -> bool:
    return any(record.truth == truth for record in records)


def _writes(span: Span) -> bool:
    return span.operation.startswith(("Put", "Complete", "Upload", "Create"))


def _across(value: float, most: float) -> float:
    return (_RIGHT - _LEFT) * value / most if most else 0.0
