"""The campaign runs scenarios by pytest, leaves a line for each, and tells a broken promise from an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT
from tests.lab.campaign.pytest_process import run_pytest
from tests.lab.campaign.record import SCENARIO_RESULTS, ScenarioRecord
from tests.lab.campaign.scenarios.running import replay, run
from tests.lab.results import read

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TAKEOVER = "tests/contract/coordination/test_leases.py"
SHORT = "dead_holder_s_lock memory"
TESTS = """
import pytest

def test_keeps(record_property):
    record_property("faults", 7)

def test_breaks():
    assert False, "lost"

def test_cannot_run(no_such_fixture): ...

@pytest.mark.skip(reason="no service")
def test_is_skipped(): ...
"""
STUCK = """
import threading
import pytest

@pytest.mark.timeout(0.1)
def test_hangs():
    threading.Event().wait()

def test_behind_it(): ...
"""


def played(folder: Path, select: str, until: float | None = None) -> tuple[ScenarioRecord, ...]:
    assert run(folder, [TAKEOVER], select=select, jobs=1, until=until, s3="moto", progress=lambda: None)
    return read(folder / SCENARIO_RESULTS, ScenarioRecord)


def test_each_selected_scenario_leaves_a_line_and_runs_once(tmp_path: Path) -> None:
    """With its subject, what came of it, and how long it took; a second run finds nothing to do."""
    found = played(tmp_path, SHORT)
    assert found
    assert {(one.subject, one.outcome, one.error) for one in found} == {("turn", "kept", None)}
    assert played(tmp_path, SHORT) == found
    again = replay(found[0].test, "moto")
    assert (again.test, again.outcome) == (found[0].test, "kept")


def test_no_scenario_begins_when_the_time_is_over(tmp_path: Path) -> None:
    """The campaign is not finished then."""
    assert not run(tmp_path, [TAKEOVER], select=SHORT, jobs=1, until=0.0, s3="moto", progress=lambda: None)
    assert read(tmp_path / SCENARIO_RESULTS, ScenarioRecord) == ()


def test_words_that_select_nothing_are_refused(tmp_path: Path) -> None:
    """As in the other tiers."""
    with pytest.raises(ValueError, match="'hudi' selects no scenario"):
        played(tmp_path, "hudi")


def test_a_server_of_another_user_reaches_its_temporary_files(tmp_path: Path) -> None:
    """As root PostgreSQL's server runs as nobody. The folder begins as that of `tempfile`, open to its owner alone."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "own"
    folder.mkdir(mode=0o700)
    run_pytest(tmp_path, (), folder / "said")
    assert folder.stat().st_mode & 0o777 == 0o711


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{TAKEOVER}::test_none", "pytest finds no such test"),
        ("tests/unit/test_docs.py::test_one", "is no scenario"),
    ],
)
def test_a_name_of_no_scenario_is_refused(name: str, message: str) -> None:
    """With the words of who knows it."""
    with pytest.raises(ValueError, match=message):
        replay(name, "moto")


def reported(tree: Path, tests: str) -> tuple[int | None, tuple[ScenarioRecord, ...]]:
    """Run tests with the name of scenarios in a folder of their own; return pytest's exit code and all results."""
    folder = tree / "tests" / "faults"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_kills.py").write_text(tests)
    (tree / "pytest.ini").write_text("[pytest]\n")
    plugin = ("-p", "tests.lab.campaign.scenarios.reporting", f"--campaign-results={tree}")
    code = run_pytest(tree, (*plugin, "-p", "no:randomly", "tests/faults/test_kills.py"), tree / "said")
    return code, read(tree / SCENARIO_RESULTS, ScenarioRecord)


def test_a_test_that_fails_is_a_broken_promise_and_one_that_cannot_run_an_error(tmp_path: Path) -> None:
    """A skip is neither."""
    code, found = reported(tmp_path, TESTS)
    assert code == 1, (tmp_path / "said").read_text()
    assert [(one.outcome, one.faults) for one in found] == [("kept", 7), ("broken", 1), ("error", 1), ("skipped", 1)]
    assert "lost" in str(found[1].error)
    assert str(ROOT) not in found[0].test
    again = reported(tmp_path, TESTS)[1][len(found) :]
    assert [one.outcome for one in again] == ["error", "skipped"]  # the other two have told what they can


def test_a_test_that_runs_out_of_time_is_an_error_and_ends_its_session(tmp_path: Path) -> None:
    """A slow machine breaks no promise, and the next test may need the very thing at which this one was stopped."""
    code, found = reported(tmp_path, STUCK)
    assert code == 2, (tmp_path / "said").read_text()
    assert [(one.test.rpartition("::")[2], one.outcome) for one in found] == [("test_hangs", "error")]
