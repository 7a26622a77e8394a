"""Select the mutants and their tests, reuse earlier results, and apply the excuses."""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.mutants.changes import Mutant, mutants
from tests.mutants.running import ROOT, WATCH_S, Reach, Trial, in_children, reach_of, try_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SPARK_TESTS", "TESTS", "Campaign", "Excuse", "Result", "excuses", "modules"]

TESTS: Final = ("tests/contract", "tests/model", "tests/unit/safewriter")
SPARK_TESTS: Final = ("tests/integration/safewriter",)
_SPARK: Final = tuple(
    f"safewriter/{name}.py"
    for name in ("shortcut", "opening", "tables/delta/session", "tables/iceberg/session", "tables/spark", "writer")
)
"""The code that runs only around a Spark session: the tests without one run hardly a line of it."""
_PATIENCE: Final = 5
"""A mutant's process is killed after this many times the duration of its tests."""
_EXCUSES: Final = Path(__file__).parent / "excuses.toml"


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the file of results."""

    file: str
    number: int
    """The mutant's number within its module."""
    line: int
    function: str
    text: str
    change: str
    outcome: str
    """killed, survived, excused"""
    by: str | None
    """The failed test, or the reason of the excuse."""
    module: str
    """The digest of the module's source."""
    tests: str
    """The digest of the killing test, or of those that were tried."""


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a mutant may survive. `text` is the line of the source."""

    file: str
    function: str
    text: str
    change: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    file: str
    number: int
    text: str
    mutant: Mutant

    def matches(self, one: Excuse | Result) -> bool:
        mutant = self.mutant
        return (self.file, mutant.function, self.text, mutant.change) == (one.file, one.function, one.text, one.change)


def modules(wanted: Sequence[str] = (), *, spark: bool = False) -> list[str]:
    """The guard's modules below these paths; by default those that tests without Spark can judge (with `spark` the
    others).
    """
    every = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "safewriter").rglob("*.py"))
    if not wanted:
        return [one for one in every if (one in _SPARK) is spark]
    return [one for one in every if any(one == path or one.startswith(f"{path.rstrip('/')}/") for path in wanted)]


def excuses(path: Path = _EXCUSES) -> list[Excuse]:
    """The listed excuses: by file and reason, each with its line."""
    found = tomllib.loads(path.read_text())
    return [
        Excuse(file, one["function"], one["line"], change, one["reason"])
        for file, several in found.items()
        for one in several
        for change in one["changes"]
    ]


class Campaign:
    """The mutants of some modules. `folder` holds earlier results, and the lines that each test runs."""

    def __init__(
        self,
        files: Sequence[str],
        folder: Path,
        *,
        beside_each_other: int,
        seconds: float,
        tests: Sequence[str] = TESTS,
    ) -> None:
        self._files = files
        self._seconds = seconds
        self._test_files = _test_files(tests)
        self._folder = folder
        self._beside_each_other = beside_each_other
        self._excuses = [one for one in excuses() if one.file in files]

    @property
    def results_file(self) -> Path:
        return self._folder / "results.jsonl"

    @cached_property
    def candidates(self) -> list[_Candidate]:
        """Every mutant, in the order of the sources."""
        found = []
        for file in self._files:
            source = (ROOT / file).read_text()
            lines = source.splitlines()
            for number, mutant in enumerate(mutants(ast.parse(source))):
                found.append(_Candidate(file, number, lines[mutant.line - 1].strip(), mutant))
        return found

    def known(self) -> Iterator[str]:
        """Yield a line for each mutant: its place, its change, and the last run's result."""
        before = self._before()
        for one in self.candidates:
            old = before.get((one.file, one.number))
            found = f"{old.outcome} ({old.by})" if old is not None and one.matches(old) else "not tried"
            yield f"{one.file}:{one.mutant.line}: {one.mutant.function}: {one.mutant.change}: {found}"

    def stale_excuses(self) -> list[Excuse]:
        """Excuses without a mutant: their code has changed or was deleted."""
        return [one for one in self._excuses if not any(candidate.matches(one) for candidate in self.candidates)]

    def watch(self) -> Iterator[str]:
        """Find the lines that each test runs, where unknown; yield each file, and its error if any."""
        self._reach: dict[str, Reach] = {}
        unknown = []
        for file in self._test_files:
            held = self._reach_file(file)
            if held.exists():
                self._reach[file] = Reach(**json.loads(held.read_text()))
            else:
                unknown.append(file)
        for file, reach in in_children(unknown, reach_of, beside_each_other=self._beside_each_other, at_most_s=WATCH_S):
            if isinstance(reach, str):
                raise SystemExit(f"{reach}\nmutants: {file} fails without any mutant")
            self._reach[file] = reach
            for old in self._reach_folder.glob(f"{_name(file)}-*"):
                old.unlink()
            self._reach_folder.mkdir(parents=True, exist_ok=True)
            self._reach_file(file).write_text(json.dumps(asdict(reach)))
            yield file

    def run(self) -> Iterator[Result]:
        """Yield a result for each mutant, known ones first; each is stored immediately."""
        before = self._before()
        self._folder.mkdir(parents=True, exist_ok=True)
        found = {key: old for key, old in before.items() if old.file not in self._files}
        with self.results_file.open("a") as file:
            for result in self._results(before):
                found[result.file, result.number] = result
                file.write(f"{json.dumps(asdict(result))}\n")
                file.flush()
                yield result
        lines = [f"{json.dumps(asdict(found[key]))}\n" for key in sorted(found)]
        self.results_file.write_text("".join(lines))  # without outdated results

    def _results(self, before: dict[tuple[str, int], Result]) -> Iterator[Result]:
        trials: list[Trial] = []
        for candidate in self.candidates:
            trial = Trial(candidate.file, candidate.number, self._tests(candidate))
            excuse = next((one for one in self._excuses if candidate.matches(one)), None)
            old = before.get((candidate.file, candidate.number))
            if excuse is not None:
                yield self._result(trial, "excused", excuse.reason)
            elif old is not None and self._holds(old, trial):
                yield old
            elif not trial.tests:
                yield self._result(trial, "survived", "no test runs the line")
            else:
                trials.append(trial)
        at_most_s = _PATIENCE * self._seconds
        for trial, killer in in_children(
            trials, try_out, beside_each_other=self._beside_each_other, at_most_s=at_most_s
        ):
            yield self._result(trial, "survived" if killer is None else "killed", killer)

    def _result(self, trial: Trial, outcome: str, by: str | None) -> Result:
        one = self._candidate(trial)
        tests = _digest_of(by) if outcome == "killed" and by else self._digest_of_tests(trial)
        return Result(
            *(trial.module, trial.number, one.mutant.line, one.mutant.function, one.text, one.mutant.change),
            *(outcome, by, _digest(ROOT / trial.module), tests),
        )

    def _holds(self, old: Result, trial: Trial) -> bool:
        """Whether an earlier result still holds: the code and the killing test, or all tried tests, are unchanged."""
        if old.module != _digest(ROOT / trial.module) or not self._candidate(trial).matches(old):
            return False
        if old.outcome == "killed":
            return old.by is not None and old.by in trial.tests and old.tests == _digest_of(old.by)
        return old.outcome == "survived" and old.tests == self._digest_of_tests(trial)

    def _candidate(self, trial: Trial) -> _Candidate:
        return self._numbered[trial.module, trial.number]

    @cached_property
    def _numbered(self) -> dict[tuple[str, int], _Candidate]:
        return {(one.file, one.number): one for one in self.candidates}

    def _before(self) -> dict[tuple[str, int], Result]:
        if not self.results_file.exists():
            return {}
        results = [Result(**json.loads(line)) for line in self.results_file.read_text().splitlines()]
        return {(one.file, one.number): one for one in results}

    def _tests(self, candidate: _Candidate) -> list[str]:
        """The tests that run the changed line, as time allows: the module's own tests first, quick before slow ones."""
        found: list[tuple[bool, float, str]] = []
        mutant = candidate.mutant
        for file, reach in self._reach.items():
            mirrors = _mirrors(file, candidate.file)
            for test, lines in reach.lines.items():
                ran = {*lines.get(candidate.file, ()), *reach.setup.get(candidate.file, ())}
                if (ran or mirrors) if mutant.at_import else mutant.line in ran:
                    found.append((not mirrors, reach.seconds[test], test))
        found.sort()
        spent = accumulate(seconds for _, seconds, _ in found)
        return [test for (*_, test), after in zip(found, spent, strict=True) if after <= self._seconds]

    def _digest_of_tests(self, trial: Trial) -> str:
        files = sorted({test.partition("::")[0] for test in trial.tests})
        return f"{len(trial.tests)} {_digest(*(ROOT / file for file in files))}"

    @property
    def _reach_folder(self) -> Path:
        return self._folder / "reach"

    def _reach_file(self, file: str) -> Path:
        return self._reach_folder / f"{_name(file)}-{_digest(ROOT / file, *self._behind)}.json"

    @cached_property
    def _behind(self) -> list[Path]:
        """The files that affect any test's reach: the guard, and the tests' helpers."""
        helpers = (path for folder in TESTS for path in (ROOT / folder).rglob("*.py"))
        return sorted((ROOT / "safewriter").rglob("*.py")) + sorted(
            path for path in helpers if not path.name.startswith("test_")
        )


def _test_files(paths: Sequence[str]) -> list[str]:
    folders = [ROOT / path for path in paths]
    found = [file for path in folders for file in ([path] if path.is_file() else path.rglob("test_*.py"))]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def _mirrors(test_file: str, module: str) -> bool:
    test, source = Path(test_file), Path(module)
    return test.parent == Path("tests/unit") / source.parent and (
        test.stem == f"test_{source.stem}" or test.stem.startswith(f"test_{source.stem}_")
    )


def _name(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


def _digest_of(test: str) -> str:
    file = ROOT / test.partition("::")[0]
    return _digest(file) if file.exists() else ""


@cache
def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]
