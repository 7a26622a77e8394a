"""The driver sends a job's variables to Spark's Python workers through a socket, which /proc does not show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import handler.driver.worker
from handler.driver.worker_variables import serve

WORKER = Path(handler.driver.worker.__file__).parent


def python(code: str, *folders: Path, **variables: str) -> str:
    """Run a Python process as the JVM starts one: with the worker folder first on its path."""
    environment = {"PYTHONPATH": ":".join(map(str, (WORKER, *folders))), **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_process_gets_the_variables_and_was_not_started_with_them(tmp_path: Path) -> None:
    """This works for any content and any length of the sandbox's path; /proc shows none of the variables."""
    (folder := tmp_path / ("long" * 30)).mkdir()
    place = str(folder / "variables")
    serve({"MODE": "a=b\nc", "PGPASSWORD": "secret \u00e9"}, place)
    code = """
import os
print([os.environ[name] for name in ("MODE", "PGPASSWORD")], "secret" in open("/proc/self/environ").read())
"""
    for _ in range(2):
        assert python(code, SOAL_VARIABLES=place, PYTHONUTF8="1") == "['a=b\\nc', 'secret \u00e9'] False\n"


def test_another_module_of_that_name_is_imported_as_well(tmp_path: Path) -> None:
    """A derived image may have such a module; without one, and without variables, nothing happens."""
    (tmp_path / "sitecustomize.py").write_text("import os; os.environ['THEIRS'] = 'imported'", encoding="utf-8")
    assert python("import os; print(os.environ.get('THEIRS'))", tmp_path) == "imported\n"
    assert os.environ.get("THEIRS") is None
    assert python("import sys; print(any(entry.endswith('driver/worker') for entry in sys.path))") == "False\n"
