"""`soal orphans` shows people the found, held and deleted files with reasons, and cuts a long list."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from safewriter.objects import Upload
from soal.orphans.views import orphans_view
from tests.unit.soal.orphans.bench import Bench, data_key

if TYPE_CHECKING:
    from soal.orphans.report import OrphanReport


def render(report: OrphanReport) -> str:
    console = Console(width=250, record=True, file=io.StringIO())
    console.print(*orphans_view(report).parts, sep="\n")
    return console.export_text()


def test_a_person_sees_what_was_found_what_is_held_and_why() -> None:
    """The view shows files, holds and reasons, with names that look like markup verbatim."""
    bench = Bench()
    strange = data_key("day=[red]/")
    bench.put(strange, "sub/_delta_log/0.json")
    bench.ages()
    job = bench.world.job(deadline_ms=None).begin()
    bench.lake.begin_upload(Upload(strange, "1"))
    bench.ages()
    text = render(bench.look())
    assert strange in text
    assert job.leftover in text
    assert "it may belong to an open write" in text
    assert "1 files (11 bytes) may be deleted, 3 are held" in text
    assert "run run" in text
    assert "another table lies in sub/" in text


def test_a_long_list_is_cut_and_says_so() -> None:
    """A long list is truncated with a note; the JSON has everything."""
    bench = Bench()
    bench.put(*(data_key() for _ in range(130)))
    bench.ages()
    text = render(bench.look())
    assert text.count("part-00000") == 100
    assert "and 30 more" in text


def test_what_was_done_stands_beside_each_file() -> None:
    """After a deletion files are shown as deleted and uploads as aborted."""
    bench = Bench()
    bench.put(data_key())
    bench.lake.begin_upload(Upload(data_key(), "1"))
    bench.ages()
    text = render(bench.delete())
    assert "deleted" in text
    assert "aborted" in text
