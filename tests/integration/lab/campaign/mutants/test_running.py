"""The campaign's mutants, with real tests in copies of the tree: a lost guard is caught, a comment is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT
from tests.lab.campaign.mutants.listing import Mutant, listed
from tests.lab.campaign.mutants.running import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_guard_that_is_gone_is_caught_and_a_changed_comment_survives(tmp_path: Path) -> None:
    """Real tests run in copies of the tree, and the tree itself stays unchanged."""
    guard = next(one for one in listed() if one.name == "grace-ignored")
    comment = Mutant(
        name="no-comment",
        guard="A comment says why.",
        file="safewriter/record/journal.py",
        old="# If this first line is missing, the file was truncated, however much is appended afterwards.",
        new="# Another comment.",
        tests=guard.tests,
    )
    before = [(ROOT / one.file).read_bytes() for one in (guard, comment)]
    caught, survived = run(tmp_path, [guard, comment], jobs=2)
    assert caught.outcome == "caught"
    assert str(caught.by).startswith(f"{guard.tests[0]}::test_an_end_is_over_only_after_its_grace[")
    assert (survived.outcome, survived.by, survived.error) == ("survived", None, None)
    assert [(ROOT / one.file).read_bytes() for one in (guard, comment)] == before
