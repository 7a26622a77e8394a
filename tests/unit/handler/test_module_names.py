"""The handler refuses a job's Python files that would hide modules of Spark or guard, or that hold native code."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from handler import module_names
from handler.module_names import NATIVE, check_archive, check_file, stored_name

ROOT = Path(__file__).parents[3]


def imported(path: Path) -> set[str]:
    """Return the top-level names that a file imports when it runs."""
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
    """Each module that SafeWriter imports, from any source, is refused as a file's name."""
    names = {name for path in (ROOT / "safewriter").rglob("*.py") for name in imported(path)}
    assert names > {"safewriter", "boto3", "botocore", "json", "pyiceberg"}
    for name in sorted(names - {"opentelemetry"}):  # whoever gives a reader a meter has it
        with pytest.raises(ValueError, match="would hide"):
            check_file(f"{name}.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["pyspark", "py4j", "delta", "sitecustomize", "usercustomize", *sorted(sys.stdlib_module_names)]
)
def test_what_spark_rests_on_cannot_be_hidden(name: str) -> None:
    """These are Spark's packages and the whole standard library."""
    with pytest.raises(ValueError, match=f"^{name}.py would hide {name}"):
        check_file(f"{name}.py")


@pytest.fixture
def of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder of packages that a job has; this process also has those of the test run."""
    folder = tmp_path / "packages"
    (folder / "pyspark").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setattr("site.getsitepackages", list)
    return folder


@pytest.mark.parametrize("name", sorted(module_names._IN_SOME_IMAGES))
def test_a_job_may_bring_what_its_image_lacks(tmp_path: Path, of_packages: Path, name: str) -> None:
    """This process's own path does not matter; once the image has the package, it is refused."""
    brought = archive(tmp_path, f"{name}/__init__.py")
    check_archive(brought)
    check_file(f"{name}.py")
    (of_packages / name).mkdir()
    with pytest.raises(ValueError, match=f"holds {name}/__init__.py, which would hide {name}, .*, which the image has"):
        check_archive(brought)
    with pytest.raises(ValueError, match="would hide"):
        check_file(f"{name}.py")


def test_a_package_of_python_s_own_is_the_image_s_too(
    tmp_path: Path, of_packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds without PySpark beside it; the check imports nothing."""
    assert list(of_packages.iterdir()) == [of_packages / "pyspark"]
    (tmp_path / "kazoo.py").write_text("raise AssertionError")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
    with pytest.raises(ValueError, match="would hide kazoo"):
        check_file("kazoo.py")


@pytest.mark.parametrize(
    "name", ["handler.py", "scripts.py", "infra.py", "tests.py", "my_json.py", "json.v2.py", "JSON.py", "json.zip"]
)
def test_any_other_name_is_the_job_s(name: str) -> None:
    """SoAL's names are among them; a file that Python would not find under the module's name hides nothing."""
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
    """This covers each form in which Python finds a module there."""
    path = archive(tmp_path, "mine.py", name)
    with pytest.raises(ValueError, match=f"^holds {name}, which would hide"):
        check_archive(path)


@pytest.mark.parametrize("name", ["scripts/__init__.py", "mine/json.py", "json/data.txt", "email/sub/__init__.py"])
def test_an_archive_s_other_modules_are_its_own(tmp_path: Path, name: str) -> None:
    """These are deeper modules, and a folder that is not a package, which Python skips for a later package."""
    check_archive(archive(tmp_path, name))


def test_an_archive_that_python_cannot_read_is_refused(tmp_path: Path) -> None:
    """Python would not find its modules."""
    (tmp_path / "lib.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="is no zip file"):
        check_archive(tmp_path / "lib.zip")


@pytest.mark.parametrize(
    "name", ["fast/_c.cpython-311-x86_64-linux-gnu.so", "fast.abi3.so", "a.libs/libz.so.1.2", "fast/_c.pyd", "OLD.SO"]
)
def test_an_archive_with_native_code_is_refused(tmp_path: Path, name: str) -> None:
    """Its own name does not matter; the reason is the same as for a wheel's name."""
    path = archive(tmp_path, "fast/__init__.py", name)
    with pytest.raises(ValueError, match=f"^holds {name}: ") as caught:
        check_archive(path)
    assert NATIVE in str(caught.value)


@pytest.mark.parametrize("name", ["soap.py", "fast/a.so.py", "so", "fast/libz.so.txt", "a.solution/b.py"])
def test_what_only_looks_like_native_code_is_accepted(tmp_path: Path, name: str) -> None:
    """The end of the name decides."""
    check_archive(archive(tmp_path, name))


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("A.py", "A.py"),
        ("A.PY", "A.py"),
        ("a.ZIP", "a.zip"),
        ("A-1.WHL", "A-1.whl.zip"),
        ("a.B.egg", "a.B.egg"),
        ("a#b,{c}.zip", "a_b__c_.zip"),
    ],
)
def test_a_file_is_stored_with_a_suffix_that_is_read(name: str, stored: str) -> None:
    """The suffix is in lower case, a wheel is a zip file, and signs with a meaning for Spark are replaced."""
    assert stored_name(name) == stored
