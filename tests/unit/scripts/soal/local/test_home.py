from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.soal.console.problem import Problem
from scripts.soal.local.home import Home

if TYPE_CHECKING:
    from pathlib import Path


def test_a_variant_that_was_not_made_names_the_command(tmp_path: Path) -> None:
    """Instead of a job that finds nothing."""
    with pytest.raises(Problem) as caught:
        Home(tmp_path).of_variant("full")
    assert "scripts/setup --variant full" in caught.value.todo


@pytest.mark.parametrize(("variant", "folder"), [("slim", "."), ("full", "full")])
def test_a_variant_has_a_home(tmp_path: Path, variant: str, folder: str) -> None:
    """With a Python in it."""
    home = Home(tmp_path / folder)
    home.python.parent.mkdir(parents=True)
    home.python.touch()
    assert Home(tmp_path).of_variant(variant) == home  # type: ignore[arg-type]
