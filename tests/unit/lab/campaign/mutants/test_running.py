"""The campaign tries its named mutants after a control run of their tests, and skips those with a result."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from soal.console.problem import Failure
from tests.lab.campaign.mutants import running
from tests.lab.campaign.mutants.listing import MutantError
from tests.lab.campaign.mutants.trials import Trial
from tests.lab.campaign.record import MUTANTS, MutantRecord
from tests.lab.results import append, read
from tests.unit.lab.campaign.mutants.test_listing import mutant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAILS = Trial(failed="tests/test_code.py::test_it")
ERROR = Trial(error="pytest ended with 4")


class Runs:
    """Runs no tests; `ends` says how each run would have ended. A run is its targets, and the code that they saw."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.ends: list[Trial] = []
        self.seen: list[tuple[tuple[str, ...], str]] = []
        self.compiled = 0

    @contextmanager
    def copied(self) -> Iterator[Path]:
        (self.tree / "code.py").write_text("fence()", encoding="utf-8")
        (self.tree / "Code.java").write_text("fence()", encoding="utf-8")
        yield self.tree

    def tried(self, tree: Path, targets: tuple[str, ...], limit_s: float) -> Trial:
        assert limit_s >= running._LIMIT_S
        self.seen.append((targets, (tree / "code.py").read_text(encoding="utf-8")))
        return self.ends.pop(0)

    def compile_java(self, tree: Path) -> None:
        self.compiled += 1
        if not (tree / "Code.java").read_text(encoding="utf-8"):
            raise Failure("class Code is empty", todo="write it")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    tree = tmp_path / "tree"
    tree.mkdir()
    made = Runs(tree)
    for name in ("copied", "tried", "compile_java"):
        monkeypatch.setattr(running, name, getattr(made, name))
    return made


def test_a_mutant_is_tried_by_its_tests_in_changed_code(tmp_path: Path, runs: Runs) -> None:
    """The line names the test that fails; without one the mutant has survived."""
    runs.ends = [FAILS, Trial(), ERROR]
    for _ in range(3):
        running.trial(tmp_path, mutant())
    assert runs.seen == [(("tests/test_code.py",), "")] * 3
    assert runs.compiled == 0
    found = read(tmp_path / MUTANTS, MutantRecord)
    assert [(one.outcome, one.by, one.error) for one in found] == [
        ("caught", FAILS.failed, None),
        ("survived", None, None),
        ("error", None, ERROR.error),
    ]
    assert {(one.name, one.guard, one.file) for one in found} == {("no-fence", "It fences.", "code.py")}


def test_java_is_compiled_before_its_tests(tmp_path: Path, runs: Runs) -> None:
    """What does not compile was not caught by a test."""
    runs.ends = [FAILS]
    running.trial(tmp_path, mutant(file="Code.java", new="pass()"))
    running.trial(tmp_path, mutant(file="Code.java"))
    assert runs.compiled == 2
    assert len(runs.seen) == 1
    caught, error = read(tmp_path / MUTANTS, MutantRecord)
    assert caught.outcome == "caught"
    assert (error.outcome, error.by) == ("error", None)
    assert "class Code is empty" in str(error.error)


def test_the_control_runs_each_target_once_in_code_as_it_is(runs: Runs) -> None:
    """In one run."""
    runs.ends = [Trial()]
    running.control([mutant(tests=["a", "b"]), mutant(tests=["b", "c"], file="Code.java")])
    assert runs.seen == [(("a", "b", "c"), "fence()")]
    assert runs.compiled == 1


@pytest.mark.parametrize("ended", [FAILS, ERROR])
def test_tests_that_do_not_pass_by_themselves_prove_nothing(runs: Runs, ended: Trial) -> None:
    """The error says which one, or what has happened."""
    runs.ends = [ended]
    with pytest.raises(running.ControlError, match=str(ended.failed or ended.error)):
        running.control([mutant()])


def test_mutants_are_selected_by_words_of_their_names() -> None:
    """As other cases of the campaign are."""
    mutants = [mutant(name="no-fence-delta"), mutant(name="no-fence-iceberg"), mutant(name="no-mark")]
    assert running.selected(mutants, "fence -delta") == (mutants[1],)
    assert running.selected(mutants, "") == tuple(mutants)
    with pytest.raises(ValueError, match="'lease' selects no mutant"):
        running.selected(mutants, "lease")


def test_what_has_a_result_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for an error. The last line of a mutant counts, and others of the folder are left out."""
    monkeypatch.setattr(running, "about", dict)
    monkeypatch.setattr(running, "ROOT", tmp_path)
    (tmp_path / "code.py").write_text("fence()", encoding="utf-8")
    asked: list[list[str]] = []

    class Pool:
        def submit(self, work: object, *order: object) -> object:
            if work is running.control:
                (mutants,) = order
                asked.append([one.name for one in mutants])  # type: ignore[attr-defined]
            else:
                folder, one = order
                result(folder, one.name, "caught")  # type: ignore[arg-type,attr-defined]
            return None

    @contextmanager
    def workers(jobs: int) -> Iterator[Pool]:
        assert jobs == 2
        yield Pool()

    def all_of(work: list[object], progress: object) -> None:
        progress()  # type: ignore[operator]

    monkeypatch.setattr(running, "workers", workers)
    monkeypatch.setattr(running, "all_of", all_of)
    for name, outcome in (("no-a", "survived"), ("no-b", "error"), ("no-other", "caught")):
        result(tmp_path, name, outcome)
    seen: list[int] = []
    mutants = [mutant(name=name) for name in ("no-c", "no-b", "no-a")]
    found = running.run(tmp_path, mutants, jobs=2, progress=seen.append)
    assert asked == [["no-c", "no-b"]]
    assert [(one.name, one.outcome) for one in found] == [("no-c", "caught"), ("no-b", "caught"), ("no-a", "survived")]
    assert seen == [1, 3]
    assert running.run(tmp_path, mutants, jobs=2) == found
    assert len(asked) == 1


def test_a_mutant_that_does_not_fit_the_code_ends_the_command_before_any_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control takes a minute."""
    monkeypatch.setattr(running, "about", dict)
    with pytest.raises(MutantError, match=r"mutant no-fence: there is no file code\.py"):
        running.run(tmp_path, [mutant()], jobs=1)


def result(folder: Path, name: str, outcome: str) -> None:
    record = {"name": name, "guard": "g", "file": "f", "outcome": outcome, "by": None, "seconds": 1, "error": None}
    append(folder / MUTANTS, MutantRecord.model_validate(record))
