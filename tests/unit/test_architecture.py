"""The architecture, checked in the sources: which room may import which, and what each package exports."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
OURS = frozenset({"handler", "infra", "safewriter", "scripts", "soal", "tests"})
MAY_IMPORT = {
    "handler": frozenset({"handler", "safewriter"}),
    "infra": frozenset({"infra"}),
    "safewriter": frozenset({"safewriter"}),
    "scripts": OURS - {"tests"},
    "soal": frozenset({"handler", "safewriter", "soal"}),
}
# Modules that other rooms may import: definitions, in modules that import nothing of ours.
SHARED = {
    "infra": frozenset(
        {
            "handler.variables",
            "handler.spark_settings.fixed",
            "handler.module_names",
            "handler.redaction.secret_names",
        }
    )
}
# Modules whose code a room uses, so that both rooms agree.
ASKED = {
    "infra": frozenset(
        {
            "handler.deployable",
            "handler.redaction.secret_forms",
            "safewriter.deadline",
            "safewriter.schedule",
            "scripts.image.microvm",
        }
    )
}
# Values pass through the handler's rooms in this order: a room imports no later one.
STAGES = ("request", "spark", "runs", "outcome", "stages", "durable", "functions")
# Only these adapters import an engine or a format, so that all other code runs without it.
ADAPTERS = {
    "cel_expr_python": ("safewriter/snapshots",),
    "delta": ("safewriter/tables/delta",),
    "deltalake": ("safewriter/tables/delta",),
    "kazoo": ("safewriter/coordination",),
    "numpy": ("safewriter/snapshots",),
    "py4j": ("safewriter/tables",),
    "pyarrow": ("safewriter/snapshots",),
    "pyiceberg": ("safewriter/tables/iceberg",),
    "pyspark": ("safewriter/tables", "safewriter/snapshots"),
    "xxhash": ("safewriter/snapshots",),
}


@dataclass(frozen=True, slots=True)
class Import:
    """A module in an import statement; `typing_only`: the import is under `if TYPE_CHECKING`."""

    module: str
    line: int
    typing_only: bool

    @property
    def top(self) -> str:
        return self.module.split(".")[0]


def imports_of(path: Path, root: Path) -> Iterator[Import]:
    """Yield all imports of a file, also nested ones, with relative ones resolved."""
    package = path.relative_to(root).with_suffix("").parts[:-1]

    def walk(node: ast.AST, *, typing_only: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, typing_only)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield Import(".".join([*base, *filter(None, [node.module])]), node.lineno, typing_only)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.body:
                yield from walk(child, typing_only=True)
            for child in node.orelse:
                yield from walk(child, typing_only=typing_only)
        else:
            for inner in ast.iter_child_nodes(node):
                yield from walk(inner, typing_only=typing_only)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), typing_only=False)


def violations(root: Path) -> list[str]:
    """Return all violations of the dependency rule under `root`, one line each."""
    found = []
    for package, allowed in MAY_IMPORT.items():
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            for imported in imports_of(path, root):
                where = f"{name}:{imported.line} imports {imported.module}"
                if imported.top in OURS - allowed and imported.module not in (
                    SHARED.get(package, frozenset()) | ASKED.get(package, frozenset())
                ):
                    found.append(f"{where}; {package} may import of ours only {', '.join(sorted(allowed))}")
                adapter = ADAPTERS.get(imported.top)
                if (
                    package == "safewriter"
                    and adapter
                    and not imported.typing_only
                    and not name.startswith(tuple(f"{one}/" for one in adapter))
                ):
                    found.append(f"{where}; only {' and '.join(adapter)} may")
    return found


def exported_by(init: Path) -> tuple[set[str], set[str]]:
    """Return a package's `__all__`, and the public names that its `__init__.py` binds."""
    listed: set[str] = set()
    bound: set[str] = set()
    body = ast.parse(init.read_text(encoding="utf-8")).body
    # Such a block declares the names of a module-level __getattr__ to type checkers.
    body += [child for node in body if isinstance(node, ast.If) for child in node.body]
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", None) not in {
            "__future__",
            "typing",
        }:
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if "__all__" in names and node.value is not None:
                listed = set(ast.literal_eval(node.value))
            bound |= names
    return listed, {name for name in bound if not name.startswith("_") or name in listed}


def untold_tests(path: Path) -> list[str]:
    """Return the test functions of a file without a docstring."""
    functions = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)
    ]
    return [node.name for node in functions if node.name.startswith("test_") and not ast.get_docstring(node)]


def packages() -> list[str]:
    inits = [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("__init__.py"))]
    return [".".join(init.parent.relative_to(ROOT).parts) for init in inits]


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow
def test_dependency_rule_holds() -> None:
    """No module imports what its room may not import."""
    assert violations(ROOT) == []


@pytest.mark.parametrize("module", sorted(path.stem for path in (ROOT / "handler" / "driver").glob("[!_]*.py")))
def test_what_runs_in_the_child_is_light(module: str) -> None:
    """The driver starts in each job before Spark. Of the handler it loads its own room, the fixed settings, names of
    secrets and the ending of processes, and it loads nothing that is slow to import.
    """
    program = f"import handler.driver.{module}, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert not loaded & {"aws_lambda_powertools", "boto3", "botocore", "pydantic", "pyiceberg", "pyspark", "safewriter"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("handler.")}
    assert rooms <= {"driver", "process", "redaction", "spark_settings"}
    assert {name for name in loaded if name.startswith("handler.redaction.")} <= {"handler.redaction.secret_names"}


@pytest.mark.parametrize("room", STAGES)
def test_the_event_goes_one_way(room: str) -> None:
    """A room of the handler imports no later one: a job is made before it runs, and runs before it is judged."""
    later = tuple(f"handler.{name}." for name in STAGES[STAGES.index(room) + 1 :])
    found = [
        f"{path.relative_to(ROOT)}:{imported.line} imports {imported.module}"
        for path in sorted((ROOT / "handler" / room).rglob("*.py"))
        for imported in imports_of(path, ROOT)
        if not imported.typing_only and imported.module.startswith(later)
    ]
    assert found == []


@pytest.mark.slow
def test_an_event_becomes_a_job_in_one_place() -> None:
    """Only `handler.request.job` turns an event into a job: it unwraps, parses and completes it."""
    importers = {
        path.relative_to(ROOT).as_posix()
        for package in MAY_IMPORT
        for path in sorted((ROOT / package).rglob("*.py"))
        for imported in imports_of(path, ROOT)
        if imported.module == "handler.request.event"
    }
    assert importers == {"handler/request/job.py"}


@pytest.mark.parametrize("module", frozenset().union(*SHARED.values()))
def test_what_rooms_share_is_data(module: str) -> None:
    """Neither a shared module nor its package imports anything of ours."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")

    for each in (path, path.with_name("__init__.py")):
        assert [found.module for found in imports_of(each, ROOT) if found.top in OURS] == []


def clients_of(source: str) -> Iterator[str]:
    """Yield the calls that make a client of AWS's and do not give it to `own_answers`."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    given = {id(each) for call in calls if ast.unparse(call.func) == "own_answers" for each in call.args}
    making = re.compile(r"(boto3|.*[sS]ession(\(.*\))?)\.(client|resource)")
    for call in calls:
        if id(call) not in given and making.fullmatch(ast.unparse(call.func)):
            yield ast.unparse(call)


@pytest.mark.slow
def test_no_client_takes_a_foreign_answer() -> None:
    """Each client of AWS's is given to `own_answers`, as `client_of` does: a proxy's page would pass for a success."""
    sources = [path for room in MAY_IMPORT for path in sorted((ROOT / room).rglob("*.py"))]
    assert {path: found for path in sources if (found := [*clients_of(path.read_text(encoding="utf-8"))])} == {}
    for made in ("boto3.client('sqs')", "boto3.session.Session(region_name='x').client('s3')", "session.client('s3')"):
        assert [*clients_of(made)] == [made]


def test_ids_are_drawn_in_one_place() -> None:
    """Two copies of a process share what its kernel alone gives (`safewriter.entropy`). A secret may be shared."""
    sources = [path for room in ("handler", "safewriter") for path in (ROOT / room).rglob("*.py")]
    found = {path for path in sources if re.search(r"uuid[14]\(|token_(hex|bytes)|urandom", path.read_text("utf-8"))}
    assert found == {ROOT / "safewriter/entropy.py"}


def test_nothing_but_set_up_installs_system_packages() -> None:
    """Only one module runs apt, and only the program of scripts/setup imports it."""
    sources = [path for room in MAY_IMPORT for path in (ROOT / room).rglob("*.py")]
    running = {path for path in sources if '"apt-get"' in path.read_text(encoding="utf-8")}
    importing = {
        path
        for path in sources
        if any(imported.module == "scripts.provision.system" for imported in imports_of(path, ROOT))
    }

    assert running == {ROOT / "scripts/provision/system.py"}
    assert importing == {ROOT / "scripts/provision/__main__.py"}


def test_every_room_is_looked_at() -> None:
    """The rule is applied to real files: each room has some."""
    assert {name.split(".")[0] for name in packages()} >= {"handler", "safewriter", "scripts"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("safewriter/writer.py", "import handler.app"),
        ("safewriter/writer.py", "import soal"),
        ("safewriter/deep/er.py", "def f():\n    from handler import app"),
        ("safewriter/writer.py", "import pyspark.sql"),
        ("safewriter/writer.py", "def f():\n    from py4j.protocol import Py4JError"),
        ("safewriter/tables/iceberg/publish.py", "import delta"),
        ("safewriter/writer.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import handler"),
        (
            "safewriter/writer.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import pyspark",
        ),
        ("handler/app.py", "import soal"),
        ("handler/app.py", "from infra.stack import Stack"),
        ("infra/stack.py", "import safewriter"),
        ("infra/stack.py", "from handler.settings import HandlerSettings"),
        ("safewriter/settings.py", "from handler.variables import VARIABLES"),
        ("soal/app.py", "from tests.faults import kill"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path: Path, name: str, text: str) -> None:
    """Each kind of forbidden import is reported, with file and line."""
    write(tmp_path, name, text)

    (found,) = violations(tmp_path)

    assert found.startswith(f"{name}:{len(text.splitlines())} imports ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("handler/app.py", "import safewriter"),
        ("handler/driver/bootstrap.py", "import pyspark"),
        ("safewriter/tables/delta/session.py", "from pyspark.sql import SparkSession"),
        (
            "safewriter/writer.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pyspark.sql import SparkSession",
        ),
        ("safewriter/tables/delta/history.py", "from . import commit\nfrom ...objects import store"),
        ("soal/app.py", "import handler\nimport safewriter"),
        ("infra/environment.py", "from handler.variables import VARIABLES"),
    ],
)
def test_an_allowed_import_is_not_reported(tmp_path: Path, name: str, text: str) -> None:
    """An allowed import is not reported."""
    write(tmp_path, name, text)

    assert violations(tmp_path) == []


@pytest.mark.parametrize("module", ["safewriter", "safewriter.settle.supervisor"])
def test_importing_safewriter_loads_no_engine(module: str) -> None:
    """Importing SafeWriter loads no engine, also not indirectly: supervisor and sweeper run without Spark."""
    program = f"import {module}, sys; print(*sorted({set(ADAPTERS)!r} & sys.modules.keys()))"

    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert loaded.stdout.split() == []


@pytest.mark.parametrize("package", packages())
def test_all_lists_what_a_package_exports(package: str) -> None:
    """`__all__` has exactly the public names of a package, in order, and each exists."""
    listed, bound = exported_by(ROOT.joinpath(*package.split("."), "__init__.py"))

    assert listed == bound
    module = importlib.import_module(package)
    assert [name for name in listed if not hasattr(module, name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "from a.b import c, d\n__all__ = ['c']",
        "from a.b import c\n__all__ = ['c', 'd']",
        "from a.b import c",
        "def c(): ...\n__all__ = []",
    ],
)
def test_a_wrong_all_is_found(tmp_path: Path, text: str) -> None:
    """A name that is exported but not listed, or listed but missing, is reported."""
    listed, bound = exported_by(write(tmp_path, "__init__.py", text))

    assert listed != bound


@pytest.mark.slow
def test_every_test_says_what_it_shows() -> None:
    """Each test has a docstring, its sentence of behaviour."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    ours = [path for path in tests if ROOT / "tests" / "vendored" not in path.parents]
    untold = {str(path.relative_to(ROOT)): untold_tests(path) for path in ours}

    assert {path: names for path, names in untold.items() if names} == {}


def test_a_test_without_a_sentence_is_found(tmp_path: Path) -> None:
    """A missing docstring is found in functions and methods."""
    text = 'def test_a(): ...\ndef test_b():\n    "B."\nclass TestC:\n    def test_d(self): ...\ndef helper(): ...'

    assert untold_tests(write(tmp_path, "test_x.py", text)) == ["test_a", "test_d"]


@pytest.mark.parametrize("package", ["handler", "safewriter"])
def test_json_is_parsed_in_one_place(package: str) -> None:
    """Only one module calls Python's JSON parser, whose RecursionError on deep nesting it turns into a ValueError."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if path != ROOT / "safewriter" / "parsing.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"json.load", "json.loads"}
    ]

    assert found == []
