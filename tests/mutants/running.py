"""Run tests in forked processes: with a mutated module, or recording the lines of the guard that they run.

A child forks from a process that has all libraries but none of the project's modules in memory, so it starts in a tenth
of a new interpreter's time and imports the project's code, including the mutant, as any test run does.
"""

from __future__ import annotations

import ast
import builtins
import gc
import io
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import islice
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from tests.mutants.changes import mutants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType

__all__ = ["OURS", "ROOT", "WATCH_S", "Reach", "Trial", "in_children", "load_libraries", "reach_of", "try_out"]

ROOT: Final = Path(__file__).parents[2]
_Task = TypeVar("_Task")
_RAN: Final = "_statement_ran_"
OURS: Final = ("handler", "image", "infra", "safewriter", "scripts", "soal", "tests")
"""The project's packages. A child imports them anew: beside a module of before there would be two of each class."""
_TEST_S: Final = 30
WATCH_S: Final = 1800.0
_MEMORY_BYTES: Final = 16 << 30
"""The limit of address space, of which a JVM reserves more than it uses; it stops a mutant's growing list."""
_ARGUMENTS: Final = (
    *("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=no"),
    *("-m", "not (matrix or image or emulator or cluster or aws)"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One mutant (the `number`-th of its module), with these tests or files of tests."""

    module: str
    number: int
    tests: Sequence[str]


@dataclass(slots=True)
class Reach:
    """For each test of a file: its duration, and the lines of the guard's modules that it runs."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    setup: dict[str, list[int]] = field(default_factory=dict)
    """Lines run by a fixture: it may belong to any test in the file."""


def load_libraries(tests: Sequence[str]) -> None:
    """Import the tests' imports, then forget the project's own modules."""
    # Before hypothesis is imported: a mutant's failing example must not be replayed in the next test run.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(prefix="mutants-hypothesis-")
    sys.dont_write_bytecode = False  # so that a child need not compile, whatever the environment says
    code, said = _pytest([*tests, "--collect-only", "--tb=short"])
    if code != 0:
        raise SystemExit(f"{said}\nmutants: the tests cannot be collected")
    for name in [*sys.modules]:  # by name, since a namespace package (`tests`) has no file but contains modules
        if name.partition(".")[0] in OURS and not name.startswith("tests.mutants"):
            del sys.modules[name]
    gc.collect()
    gc.freeze()  # the children share the pages of the imported libraries


def in_children(
    tasks: Iterable[_Task], work: Callable[[_Task], object], *, beside_each_other: int, at_most_s: float
) -> Iterator[tuple[_Task, Any]]:
    """Yield each task with the result of `work` in a child of its own, or with a sentence on how the child ended."""
    context = multiprocessing.get_context("fork")
    open_tasks: dict[Any, tuple[_Task, Any, float]] = {}
    rest = iter(tasks)
    try:
        while True:
            for task in islice(rest, beside_each_other - len(open_tasks)):
                receiver, sender = context.Pipe(duplex=False)
                child = context.Process(target=_child, args=(work, task, sender))
                child.start()
                sender.close()
                open_tasks[receiver] = (task, child, time.monotonic())
            if not open_tasks:
                return
            ready = wait([*open_tasks], timeout=1)
            for receiver, (task, child, begun) in [*open_tasks.items()]:
                if receiver in ready:
                    try:
                        result = receiver.recv()
                    except EOFError:
                        child.join(10)
                        result = f"the process ended ({child.exitcode})"
                elif time.monotonic() - begun > at_most_s:
                    result = "the process did not end"
                else:
                    continue
                _end(child)
                del open_tasks[receiver]
                receiver.close()
                yield task, result
    finally:
        for _, child, _ in open_tasks.values():
            _end(child)


def _child(work: Callable[[Any], object], task: object, sender: Any) -> None:
    os.setsid()  # end the processes that a test has started
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    sender.send(work(task))
    sender.close()
    os._exit(0)  # do not wait for threads that a mutant has left behind


def _end(child: Any) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.join()


def _pytest(arguments: Sequence[str], *plugins: object) -> tuple[int, str]:
    """Return pytest's exit code and output."""
    folder, said = tempfile.mkdtemp(prefix="mutants-"), io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            code = pytest.main([*_ARGUMENTS, *arguments, f"--basetemp={folder}/tmp"], plugins=[*plugins])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return int(code), said.getvalue()


# -- with a mutant -----------------------------------------------------------------------------------------------------


def try_out(trial: Trial) -> str | None:
    """Return the test that fails with the mutant, or None."""
    path = ROOT / trial.module
    tree = ast.parse(path.read_text())
    next(islice(mutants(tree), trial.number, None))
    sys.meta_path.insert(0, _Instead(path, compile(tree, path, "exec")))
    watch = _FirstFailure()
    code, _ = _pytest(["-x", f"--timeout={_TEST_S}", *trial.tests], watch)
    return watch.failed or (f"pytest ended with {code}" if code else None)


class _Instead(MetaPathFinder):
    """Imports a mutated form of one module."""

    def __init__(self, path: Path, code: CodeType) -> None:
        self._path = path
        self._code = code
        self._name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        return spec_from_file_location(name, self._path, loader=_Loader(name, self._path, self._code))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        super().__init__(name, str(path))
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class _FirstFailure:
    failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid} (import)"


# -- recording ---------------------------------------------------------------------------------------------------------


def reach_of(file: str) -> Reach | str:
    """Run a file of tests and return the guard's lines that each test runs; pytest's output if a test fails."""
    watch = _Watch()
    builtins.__dict__[_RAN] = watch.ran
    for path in (ROOT / "safewriter").rglob("*.py"):
        tree = _Telling(str(path.relative_to(ROOT))).visit(ast.parse(path.read_text()))
        sys.meta_path.insert(0, _Instead(path, compile(ast.fix_missing_locations(tree), path, "exec")))
    code, said = _pytest([file, "--tb=short"], watch)
    return watch.reach if code in {0, pytest.ExitCode.NO_TESTS_COLLECTED} else said


class _Telling(ast.NodeTransformer):
    """Inserts a call before each statement of a function that records it: cheaper than tracing all code."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._in_function = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, self._in_function = self._in_function, True
        found = self.generic_visit(node)
        self._in_function = outer
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name, held in ast.iter_fields(node):
            if self._in_function and isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                setattr(node, name, [new for statement in held for new in (*self._calls(statement), statement)])
        return node

    def _calls(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):  # the docstring stays first
            return []
        what: list[ast.expr] = [ast.Constant(self._module), ast.Constant(statement.lineno)]
        return [ast.copy_location(ast.Expr(ast.Call(ast.Name(_RAN, ast.Load()), what, [])), statement)]


class _Watch:
    def __init__(self) -> None:
        self.reach = Reach()
        self._here: dict[str, list[int]] = {}

    def ran(self, module: str, line: int) -> None:
        lines = self._here.setdefault(module, [])
        if line not in lines:
            lines.append(line)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._here = self.reach.setup
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        begun = time.monotonic()
        self._here = self.reach.lines.setdefault(item.nodeid, {})  # until the next test's set-up
        yield
        self.reach.seconds[item.nodeid] = round(time.monotonic() - begun, 3)
