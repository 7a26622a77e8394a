"""The picture of a full run: how long the sample append takes by each way, and what the guard adds to a warm one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.lab.bench.record import Record, latest
from tests.lab.pictures.svg import WIDTH, Canvas, Tone

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["picture"]

_LEFT, _RIGHT = 330, WIDTH - 150
_TOP, _LANE, _BAR = 92, 26, 16
_TITLE: Final = "The sample append: from the event to the answer"
_MS: Final = 1000.0


def picture(records: tuple[Record, ...]) -> str:
    """Return it as SVG. Raises `LookupError` if a benchmark that it shows is missing."""
    bars = tuple(_bars(records))
    guard = latest(records, "guard", lambda result: len({row["latency_ms"] for row in result["figures"]}) > 1)
    notes = tuple(_notes(guard))
    height = _TOP + len(bars) * _LANE + 40 + len(notes) * 20 + 24
    canvas = Canvas(height, _TITLE, "; ".join(f"{name}: {ms / _MS:.2f} s" for name, ms, _ in bars))
    canvas.text(_TITLE, 24, 36, size=20, bold=True)
    whence = ", ".join(f"{name} {number}" for name, number in guard.versions.items())
    canvas.text(
        f"{guard.cores} cores, an S3 on the same machine, commit {guard.commit}, {whence}", 24, 58, tone="muted"
    )
    scale = (_RIGHT - _LEFT) / max(ms for _, ms, _ in bars)
    for number, (name, ms, tone) in enumerate(bars):
        y = _TOP + number * _LANE
        canvas.text(name, _LEFT - 10, y + 12, anchor="end")
        canvas.box(_LEFT, y, max(ms * scale, 1), _BAR, tone=tone, opacity=0.85)
        canvas.text(f"{ms / _MS:.2f} s", _LEFT + ms * scale + 6, y + 12, size=11, tone="muted")
    y = _TOP + len(bars) * _LANE + 30
    for number, note in enumerate(notes):
        canvas.text(note, 24, y + number * 20)
    return canvas.document()


def _bars(records: tuple[Record, ...]) -> Iterator[tuple[str, float, Tone]]:
    in_image = latest(records, "start", lambda result: result["image"] is not None and result["job"] == "append").result
    on_host = latest(records, "start", lambda result: result["image"] is None and result["job"] == "append").result
    warm = latest(records, "warm").result
    floor = {row["way"]: row["ms"] for row in latest(records, "floor").result["rows"]}
    yield "aws-samples, cold, in a container", in_image["peer_ms"], "muted"
    yield "SoAL, cold, in its image", in_image["soal_ms"], "ok"
    yield "aws-samples, cold, on the host", on_host["peer_ms"], "muted"
    yield "stock spark-submit, on the host", floor["spark-submit"], "muted"
    yield "SoAL, cold, on the host", on_host["soal_ms"], "ok"
    yield "SoAL, warm", warm["warm_ms"], "ok"
    yield "pyiceberg, no JVM, no guard", floor["pyiceberg"], "blue"
    yield "deltalake, no JVM, no guard", floor["deltalake"], "blue"


def _notes(guard: Record) -> Iterator[str]:
    for row in guard.result["figures"]:
        where = f"S3 with {row['latency_ms']} ms more" if row["latency_ms"] else "this S3"
        yield (
            f"The guard adds {row['added_ms']:.0f} ms to an append of {row['rows']:,} rows to {row['format'].title()}"
            f" ({row['plain_ms']:.0f} ms), on {where}."
        )
