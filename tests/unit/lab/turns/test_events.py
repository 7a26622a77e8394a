"""The lab's three streams write their turns and windows as events in JSON, and a timeline is drawn from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema

from safewriter.coordination import End
from tests.lab.pictures.plot import png, svg
from tests.lab.turns.demo import GROUPS
from tests.lab.turns.events import EVENT, TurnEvent, Window, read_events, write_events
from tests.lab.turns.picture import timeline
from tests.lab.turns.verdict import judge
from tests.lab.turns.workload import workload

if TYPE_CHECKING:
    from pathlib import Path

EVENTS: list[Window | TurnEvent] = [
    Window(group="without", job="TTL", began_ms=5, ended_ms=9, batch=0, outcome="conflict", error="Concurrent"),
    TurnEvent(group="with", job="Ingestion", began_ms=10, ended_ms=30, token=1, end=End.COMPLETED),
    Window(group="with", job="Mutation", began_ms=30, ended_ms=2040, batch=0, outcome="landed", kept=2),
]
WORK = workload(1, 2)
VERDICTS = {group: judge(group, WORK, [one for one in EVENTS if one.group == group], ()) for group in GROUPS}


def test_events_are_read_as_they_were_written(tmp_path: Path) -> None:
    """One line for each, and each is valid by the schema."""
    write_events(EVENTS, tmp_path / "events.jsonl")
    assert read_events(tmp_path / "events.jsonl") == EVENTS
    for line in (tmp_path / "events.jsonl").read_text().splitlines():
        jsonschema.validate(json.loads(line), EVENT.json_schema())


def test_the_timeline_names_all_jobs_and_both_groups_figures() -> None:
    """As SVG that an XML parser takes, and as PNG."""
    drawn = timeline(EVENTS, VERDICTS)
    text = " ".join(ET.fromstring(svg(drawn)).itertext())  # noqa: S314 - our own
    assert text.count("Mutation") >= 2
    assert "no overlaps, 1 conflict in 1 runs" in text
    assert "NOT in the declared order" in text
    assert png(drawn).startswith(b"\x89PNG")
