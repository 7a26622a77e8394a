"""The picture of a cold run."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tests.lab.bench.phases import Phase, Request
from tests.lab.bench.trace import ColdRun, lines_of
from tests.lab.bench.waterfall import waterfall

RUN = ColdRun(
    image="soal",
    total_ms=4_000,
    initialised_ms=300,
    cpu_s={"java": 4.0},
    classes={"archive": 3},
    phases=(Phase("Java starts", "java", 0, 1_000, 0, {}), Phase("the verdict", "python", 1_000, 4_000, 1, {})),
    requests=(Request("PutObject", "lake", "data", 1_500, 1_510),),
)
ABOUT = {"commit": "0123456789ab", "versions": {"pyspark": "4.1.4", "delta-spark": "4.4.0", "moto": "5"}, "cores": 2}


def test_a_bar_is_as_long_as_its_phase() -> None:
    """One for each phase and one for each request, on one scale; their names and where they are from beside them."""
    root = ET.fromstring(waterfall(RUN, ABOUT))  # noqa: S314 - our own
    space = {"svg": "http://www.w3.org/2000/svg"}
    bars = [one for one in root.findall("svg:rect", space) if one.get("height") == "15"]
    short, long, request = (float(one.get("width", "")) for one in bars)
    assert round(long / short, 2) == 3
    assert request < short / 50
    words = [one.text for one in root.findall("svg:text", space)]
    assert {"Java starts", "1,000 ms", "the verdict", "3,000 ms", "1 requests to S3"} <= set(words)
    assert any(
        text and "in the image, 2 cores, commit 0123456789ab, pyspark 4.1.4, delta-spark 4.4.0." in text
        for text in words
    )


def test_the_lines_of_a_run_say_where_it_is_from() -> None:
    """One for the run, one for each phase and each request."""
    lines = list(lines_of(RUN, ABOUT))
    assert len(lines) == 4
    assert '"commit": "0123456789ab"' in lines[0]
    assert '"kind": "request"' in lines[-1]
