"""The lab's folder of results keeps whole lines from several writers, and refuses those of other parameters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from tests.lab.results import OtherResultsError, append, begin, read

if TYPE_CHECKING:
    from pathlib import Path


class Line(BaseModel):
    number: int
    text: str


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    """The oldest first, also from several writers at once; none of a file that is not there."""
    path = tmp_path / "lines.jsonl"
    assert read(path, Line) == ()
    lines = [Line(number=number, text="é\n" * 999) for number in range(50)]
    append(path, lines[0])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda line: append(path, line), lines[1:]))
    found = read(path, Line)
    assert found[0] == lines[0]
    assert sorted(found, key=lambda line: line.number) == lines


def test_a_folder_holds_the_results_of_one_thing(tmp_path: Path) -> None:
    """The difference is named; what is equal goes on."""
    manifest = tmp_path / "new" / "manifest.json"
    begin(manifest, {"seed": 1, "commit": "a"})
    begin(manifest, {"seed": 1, "commit": "a"})
    with pytest.raises(OtherResultsError, match="seed is 1 there, and 2 now"):
        begin(manifest, {"seed": 2, "commit": "a"})
