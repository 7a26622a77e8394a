"""Third-party files in tests/vendored are as their authors published them."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from scripts.provision.jars import Difference, compare, read_sums

VENDORED: Final = Path(__file__).parents[1] / "vendored"
FOLDERS: Final = sorted(path for path in VENDORED.iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_text_of_others_is_unchanged(folder: Path) -> None:
    """A folder contains exactly the files of its list, byte for byte, and their licence."""
    sums = read_sums(folder / "files.sha256")

    assert "LICENSE.txt" in sums
    assert compare(folder, sums) == Difference(extra=("files.sha256",))
    assert f"| `{folder.name}` |" in (VENDORED / "README.md").read_text(encoding="utf-8")


def test_deltas_tests_are_those_of_the_delta_that_is_tested() -> None:
    """The vendored tests have the tag of the tested Delta."""
    assert f"tag `v{version('delta-spark')}`" in (VENDORED / "README.md").read_text(encoding="utf-8")
