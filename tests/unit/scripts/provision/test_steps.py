"""A command that set-up runs returns its output, or fails with an error that says the next step."""

from __future__ import annotations

import sys

import pytest

from scripts.provision.steps import run
from soal.console.problem import Failure


def test_output_is_returned_with_both_streams() -> None:
    """The output of a command is one text, and `env` is added to its environment."""
    program = "import os, sys; print('out', flush=True); print(os.environ['EXTRA'], file=sys.stderr)"

    assert run([sys.executable, "-c", program], act="w", todo="t", env={"EXTRA": "err"}) == "out\nerr\n"


@pytest.mark.parametrize(
    ("args", "timeout_s", "why"),
    [
        (["/no/such/program"], 60, "cannot run /no/such/program: No such file"),
        ([sys.executable, "-c", "import sys; sys.exit('what went wrong')"], 60, r"exit 1: .*\n  \| what went wrong"),
        ([sys.executable, "-c", "import signal; signal.pause()"], 0.1, "not done after 0.1 s"),
    ],
    ids=["missing", "failed", "too long"],
)
def test_a_failure_says_what_where_and_what_to_do(args: list[str], timeout_s: float, why: str) -> None:
    """A command that is missing, fails or times out raises the same error, with the next step."""
    with pytest.raises(Failure, match=f"^the act: {why}") as failed:
        run(args, act="the act", todo="the remedy", timeout_s=timeout_s)

    assert failed.value.told.endswith("To do: the remedy")
