from __future__ import annotations

import ast
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from handler.module_names import check_archive, check_file

ROOT = Path(__file__).parents[3]


def imported(path: Path) -> set[str]:
    """The top-level names of what a file imports when it runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return {name.partition(".")[0] for name in found}


def test_whatever_the_guard_imports_cannot_be_hidden() -> None:
    """Each module that SafeWriter imports, of its own, of Python's and of others', is refused as a file's name."""
    names = {name for path in (ROOT / "safewriter").rglob("*.py") for name in imported(path)}
    assert names > {"safewriter", "boto3", "botocore", "json", "pyiceberg"}
    for name in sorted(names):
        with pytest.raises(ValueError, match="would hide"):
            check_file(f"{name}.py")


@pytest.mark.parametrize(
    "name", ["pyspark", "py4j", "delta", "sitecustomize", "usercustomize", *sorted(sys.stdlib_module_names)]
)
def test_what_spark_rests_on_cannot_be_hidden(name: str) -> None:
    """Spark's packages, and all of the standard library."""
    with pytest.raises(ValueError, match=f"^{name}.py would hide {name}"):
        check_file(f"{name}.py")


@pytest.mark.parametrize(
    "name", ["handler.py", "scripts.py", "infra.py", "tests.py", "my_json.py", "json.v2.py", "JSON.py", "json.zip"]
)
def test_any_other_name_is_the_job_s(name: str) -> None:
    """Ours among them; what Python would not find under the module's name hides nothing."""
    check_file(name)


def archive(folder: Path, *names: str) -> Path:
    path = folder / "lib.zip"
    with ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, "")
    return path


@pytest.mark.parametrize(
    "name", ["json.py", "json.pyc", "json/__init__.py", "json/__init__.pyc", "safewriter/__init__.py", "delta.py"]
)
def test_an_archive_is_refused_for_a_module_at_its_top(tmp_path: Path, name: str) -> None:
    """In each form in which Python finds one there."""
    path = archive(tmp_path, "mine.py", name)
    with pytest.raises(ValueError, match=f"^holds {name}, which would hide"):
        check_archive(path)


@pytest.mark.parametrize("name", ["scripts/__init__.py", "mine/json.py", "json/data.txt", "email/sub/__init__.py"])
def test_an_archive_s_other_modules_are_its_own(tmp_path: Path, name: str) -> None:
    """What lies deeper, and a folder that is no package, which Python passes over for a package further on."""
    check_archive(archive(tmp_path, name))


def test_an_archive_that_python_cannot_read_is_refused(tmp_path: Path) -> None:
    """Its modules would not be found."""
    (tmp_path / "lib.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="is no zip file"):
        check_archive(tmp_path / "lib.zip")
