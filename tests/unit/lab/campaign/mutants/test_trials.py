"""The campaign judges one pytest run on a mutant: caught by a named test, survived, or an error without proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.campaign.mutants.trials import Trial, judged, tried

if TYPE_CHECKING:
    from pathlib import Path

FAILED = """F
FAILED to connect, says the test
=== short test summary info ===
FAILED tests/test_a.py::test_b[c-d] - AssertionError: x
1 failed in 0.1s
"""


def test_a_run_that_passes_proves_nothing_missing() -> None:
    """Whatever it has printed."""
    assert judged(0, "FAILED says a test\n") == Trial()


def test_the_first_test_that_fails_is_named() -> None:
    """With its parameters, and without the reason. The words of the test itself name none."""
    assert judged(1, FAILED) == Trial(failed="tests/test_a.py::test_b[c-d]")


@pytest.mark.parametrize(
    ("code", "said", "error"),
    [
        (2, FAILED, "pytest ended with 2: "),  # the code cannot be imported
        (5, "no tests ran", "pytest ended with 5: no tests ran"),
        (1, "ERROR tests/test_a.py::test_b - OSError", "pytest ended with 1: ERROR"),  # in a fixture
        (None, "F", "the tests did not end in time: F"),
        (137, "", "pytest ended with 137: "),
    ],
)
def test_any_other_end_is_an_error(code: int | None, said: str, error: str) -> None:
    """No test has seen the mutant, so it was not caught."""
    found = judged(code, said)
    assert found.failed is None
    assert found.error is not None
    assert found.error.startswith(error)


def test_tests_that_do_not_end_are_ended(tmp_path: Path) -> None:
    """Which is no failure of theirs."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "test_a.py").write_text("import time\ntime.sleep(3600)\n", encoding="utf-8")
    assert str(tried(tree, ["test_a.py"], limit_s=0.1).error).startswith("the tests did not end in time")
