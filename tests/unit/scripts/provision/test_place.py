"""Set-up's stamps tell for which inputs a step is done, and its scratch folders leave nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import Place, Stamp, fingerprint

if TYPE_CHECKING:
    from pathlib import Path


def test_a_stamp_matches_only_what_was_written(tmp_path: Path) -> None:
    """A step counts as done only for the inputs with which it was completed."""
    stamp = Stamp(tmp_path / "stamps" / "step")

    assert not stamp.matches("one")
    stamp.write("one")
    assert stamp.matches("one")
    assert not stamp.matches("two")
    stamp.clear()
    assert not stamp.matches("one")


def test_a_fingerprint_sees_contents_names_and_borders(tmp_path: Path) -> None:
    """Another content, another name or another split of the same text changes the fingerprint."""
    one, two, renamed = tmp_path / "one", tmp_path / "two", tmp_path / "sub" / "one"
    renamed.parent.mkdir()
    one.write_text("a")
    two.write_text("a")
    renamed.write_text("a")

    assert fingerprint([one]) == fingerprint([renamed])
    assert len({fingerprint([one]), fingerprint([two]), fingerprint(["a"]), fingerprint(["a", ""])}) == 4
    assert fingerprint(["ab", "c"]) != fingerprint(["a", "bc"])


def test_scratch_leaves_nothing_behind(tmp_path: Path) -> None:
    """A scratch folder is deleted at the end of its block, also after an error, and after a kill by the next run."""
    place = Place(tmp_path)

    with pytest.raises(IsADirectoryError), place.scratch() as scratch:
        scratch.read_bytes()
    assert list(place.home.iterdir()) == []
    (place.home / "scratch-killed").mkdir()
    (place.home / "scratch-killed" / "half").touch()
    place.sweep()
    assert list(place.home.iterdir()) == []
