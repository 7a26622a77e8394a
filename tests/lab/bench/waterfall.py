"""The picture of a cold run: a bar for each phase on one time axis, and the requests to S3 below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.lab.pictures.svg import WIDTH, Canvas, Tone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.lab.bench.phases import Who
    from tests.lab.bench.trace import ColdRun

__all__ = ["waterfall"]

_LEFT, _RIGHT = 330, WIDTH - 70
_TOP, _LANE, _BAR = 84, 24, 15
_TITLE: Final = "A cold run of the sample job, phase by phase"
_VERSIONS: Final = ("pyspark", "delta-spark")
_STEPS_MS: Final = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
_TICKS_MAX: Final = 12
_TONES: Final[dict[Who, Tone]] = {"emulator": "muted", "handler": "warn", "java": "blue", "python": "ok"}
_WORDS: Final[dict[Who, str]] = {
    "emulator": "Lambda's emulator",
    "handler": "the handler",
    "java": "Java",
    "python": "the job's Python",
}


def waterfall(run: ColdRun, about: Mapping[str, Any]) -> str:
    """Return it as SVG; `about` says where the run is from (`tests.lab.bench.trace.about`)."""
    last = _TOP + (len(run.phases) + 1) * _LANE
    height = last + 64
    canvas = Canvas(
        height, _TITLE, "; ".join(f"{one.name}: {one.ended_ms - one.began_ms:.0f} ms" for one in run.phases)
    )
    end_ms = max((one.ended_ms for one in run.phases), default=1.0)
    scale = (_RIGHT - _LEFT) / end_ms
    canvas.text(_TITLE, 24, 36, size=20, bold=True)
    where = "on the host" if run.image is None else "in the image"
    versions = ", ".join(f"{name} {about['versions'][name]}" for name in _VERSIONS)
    words = f"{where}, {about['cores']} cores, commit {about['commit']}, {versions}. A bar's colour: who works."
    canvas.text(words, 24, 56, tone="muted")
    _axis(canvas, end_ms, scale, last)
    for number, phase in enumerate(run.phases):
        y = _TOP + number * _LANE
        width = (phase.ended_ms - phase.began_ms) * scale
        canvas.text(phase.name, _LEFT - 10, y + 12, anchor="end")
        canvas.box(_LEFT + phase.began_ms * scale, y, max(width, 1), _BAR, tone=_TONES[phase.who], opacity=0.85)
        words = f"{phase.ended_ms - phase.began_ms:,.0f} ms"
        canvas.text(words, _LEFT + phase.ended_ms * scale + 5, y + 12, size=10.5, tone="muted")
    y = _TOP + len(run.phases) * _LANE
    canvas.text(f"{len(run.requests)} requests to S3", _LEFT - 10, y + 12, anchor="end")
    for request in run.requests:
        x = _LEFT + request.began_ms * scale
        canvas.box(x, y, max((request.ended_ms - request.began_ms) * scale, 1), _BAR, tone="bad", opacity=0.7)
    _legend(canvas, height)
    return canvas.document()


def _axis(canvas: Canvas, end_ms: float, scale: float, y: float) -> None:
    canvas.line((_LEFT, y), (_RIGHT, y), tone="muted")
    step_ms = next((one for one in _STEPS_MS if end_ms / one <= _TICKS_MAX), _STEPS_MS[-1])
    for at_ms in range(0, int(end_ms) + 1, step_ms):
        x = _LEFT + at_ms * scale
        canvas.line((x, _TOP - 8), (x, y), tone="muted", width=0.3)
        canvas.text(f"{at_ms / 1000:g} s", x, y + 16, size=10.5, tone="muted", anchor="middle")


def _legend(canvas: Canvas, height: int) -> None:
    x = 24.0
    for who, tone in _TONES.items():
        canvas.box(x, height - 25, 10, 10, tone=tone, opacity=0.85)
        canvas.text(_WORDS[who], x + 15, height - 16, size=10.5, tone="muted")
        x += 45 + len(_WORDS[who]) * 6
