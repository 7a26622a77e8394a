"""Run tests in a copy of the working tree, and report which one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.pytest_process import run_pytest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Trial", "judged", "tried"]

_SUMMARY: Final = "short test summary info"
_FAILED: Final = "FAILED "
_SAID_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test run ended. `failed`: the first failed test. `error`: why the run proves nothing."""

    failed: str | None = None
    error: str | None = None


def tried(tree: Path, targets: Iterable[str], limit_s: float) -> Trial:
    """Run the targets up to the first failure. No process of the run survives."""
    said = tree.with_name("said")
    code = run_pytest(tree, ("-x", *targets), said, limit_s)
    return judged(code, said.read_text(encoding="utf-8", errors="replace"))


def judged(code: int | None, said: str) -> Trial:
    """Return a run's outcome, by pytest's exit code (None: it did not end) and output.

    Only a failed test is evidence: an error in a fixture or at the import may have any cause.
    """
    summary = said.rpartition(_SUMMARY)[2].splitlines()
    failed = next((line for line in summary if line.startswith(_FAILED)), None)
    if code == 0:
        return Trial()
    if code == 1 and failed is not None:
        return Trial(failed=failed.removeprefix(_FAILED).partition(" - ")[0])
    end = "the tests did not end in time" if code is None else f"pytest ended with {code}"
    return Trial(error=f"{end}: {said[-_SAID_MAX:]}")
