"""The pictures of benchmarks: the sample append by each way with the guard's cost; a cold run phase by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.lab.bench.record import Record, latest
from tests.lab.pictures.plot import COLOURS, Tone, figure, legend, panel, seconds, svg

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.lab.bench.phases import Who
    from tests.lab.bench.trace import ColdRun

__all__ = ["picture", "waterfall"]

_LEFT: Final = 320
_TOP, _LANE = 84, 25
_TITLE: Final = "The sample append: from the event to the answer"
_COLD_TITLE: Final = "A cold run of the sample job, phase by phase"
_VERSIONS: Final = ("pyspark", "delta-spark")
_MS: Final = 1000.0
_WHO: Final[dict[Who, tuple[str, Tone]]] = {
    "emulator": ("Lambda's emulator", "muted"),
    "handler": ("the handler", "warn"),
    "java": ("Java", "blue"),
    "python": ("the job's Python", "ok"),
}


def picture(records: tuple[Record, ...]) -> str:
    """Return the picture of a full run as SVG. Raises `LookupError` if one of its benchmarks is missing."""
    bars = tuple(_bars(records))
    guard = latest(records, "guard", lambda result: len({row["latency_ms"] for row in result["figures"]}) > 1)
    notes = tuple(_notes(guard))
    whence = ", ".join(f"{name} {number}" for name, number in guard.versions.items())
    height = _TOP + len(bars) * _LANE + 44 + len(notes) * 20
    note = f"{guard.cores} cores, an S3 on the same machine, commit {guard.commit}, {whence}"
    described = "; ".join(f"{name}: {ms / _MS:.2f} s" for name, ms, _ in bars)
    drawn = figure(height, _TITLE, note, described)
    axes = panel(drawn, _TOP, len(bars) * _LANE, (name for name, _, _ in bars), left=_LEFT)
    shown = axes.barh(
        range(len(bars)), [ms / _MS for _, ms, _ in bars], 0.65, color=[COLOURS[tone] for _, _, tone in bars]
    )
    axes.bar_label(shown, fmt="{:.2f} s", padding=5, color=COLOURS["muted"], size=11)
    axes.spines.bottom.set_visible(False)
    axes.set_xticks([])
    for number, note in enumerate(reversed(notes)):
        drawn.text(24 / 900, (20 + number * 20) / height, note)
    return svg(drawn)


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


def waterfall(run: ColdRun, about: Mapping[str, Any]) -> str:
    """Return the picture of a cold run: a bar for each phase, and the requests to S3 below, on one axis.

    `about`: the origin of the run (`tests.lab.bench.trace.about`).
    """
    where = "on the host" if run.image is None else "in the image"
    versions = ", ".join(f"{name} {about['versions'][name]}" for name in _VERSIONS)
    note = f"{where}, {about['cores']} cores, commit {about['commit']}, {versions}. A bar's colour: who works."
    lanes = [*(one.name for one in run.phases), f"{len(run.requests)} requests to S3"]
    described = "; ".join(f"{one.name}: {one.ended_ms - one.began_ms:.0f} ms" for one in run.phases)
    drawn = figure(_TOP + len(lanes) * _LANE + 64, _COLD_TITLE, note, described)
    axes = panel(drawn, _TOP, len(lanes) * _LANE, lanes, left=_LEFT + 10, right=830)
    seconds(axes, max((one.ended_ms for one in run.phases), default=_MS) / _MS)
    axes.grid(axis="x", color=COLOURS["muted"], linewidth=0.3)
    for number, one in enumerate(run.phases):
        ms = one.ended_ms - one.began_ms
        bar = axes.barh(number, ms / _MS, 0.62, one.began_ms / _MS, color=COLOURS[_WHO[one.who][1]], clip_on=False)
        axes.bar_label(bar, [f"{ms:,.0f} ms"], padding=4, color=COLOURS["muted"], size=10.5)
    spans = [(one.began_ms / _MS, (one.ended_ms - one.began_ms) / _MS) for one in run.requests]
    axes.broken_barh(spans, (len(run.phases) - 0.31, 0.62), color=COLOURS["bad"], linewidth=0.8)
    legend(drawn, [(words, tone, 1) for words, tone in _WHO.values()])
    return svg(drawn)
