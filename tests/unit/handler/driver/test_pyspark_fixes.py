"""The driver's patches of PySpark save waits and imports, and end an endless exception, without visible changes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors.exceptions.captured import CapturedException

from handler.driver import pyspark_fixes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


BEGIN = """
import sys
from handler.driver import pyspark_fixes
import pyspark.sql
pyspark_fixes.install()
"""


def run(text: str) -> list[str]:
    """Run code in a separate process, whose imports do not depend on other tests."""
    done = subprocess.run([sys.executable, "-c", BEGIN + text], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_the_question_for_numpy_imports_nothing() -> None:
    """PySpark checks for NumPy at the first call to Java with an argument."""
    assert run(
        "from pyspark.testing.utils import have_numpy\n"
        "print(have_numpy, *(name in sys.modules for name in ('pandas', 'unittest')))\n"
    ) == ["True False False"]


def test_the_testing_package_is_there_for_who_uses_it() -> None:
    """It behaves as without the patch, by either of its names."""
    assert run(
        "from pyspark.testing import assertDataFrameEqual\n"
        "import pyspark.testing.utils\n"
        "print(assertDataFrameEqual.__module__, pyspark.testing.utils.assertDataFrameEqual is assertDataFrameEqual)\n"
        "print(type(sys.modules['pyspark.testing.utils']).__name__)\n"
    ) == ["pyspark.testing.utils True", "module"]


def test_a_name_that_is_not_there_is_an_error() -> None:
    """The module raises the usual error; reading its special names imports nothing."""
    assert run(
        "import pyspark.testing.utils as utils\n"
        "print(hasattr(utils, '__wrapped__'), 'unittest' in sys.modules)\n"
        "try:\n    from pyspark.testing.utils import nothing\nexcept ImportError:\n    print('error')\n"
    ) == ["False False", "error"]


def test_the_end_of_a_context_is_not_waited_for() -> None:
    """The thread polls fifty times a second."""
    assert run(
        "import inspect\n"
        "from pyspark.accumulators import AccumulatorTCPServer\n"
        "print(AccumulatorTCPServer.serve_forever.keywords if hasattr(AccumulatorTCPServer.serve_forever, 'keywords')"
        " else inspect.getattr_static(AccumulatorTCPServer, 'serve_forever').keywords)\n"
    ) == ["{'poll_interval': 0.02}"]


def test_showing_an_exception_ends_where_showing_it_fails_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner exception is shown as it is; afterwards the next exception is shown in full again."""
    error: Any = CapturedException.__new__(CapturedException)
    error._desc, error._stackTrace = "no number", "at Spark"
    monkeypatch.setattr(CapturedException, "__str__", lambda shown: f"asked, and met: {shown!s}")
    pyspark_fixes._end_conversions()

    for _ in range(2):
        assert str(error) == "asked, and met: no number\n\nJVM stacktrace:\nat Spark"


def test_a_schema_imports_no_module(tmp_path: Path) -> None:
    """A file names the Python class of a column: only a type that the script itself has imported is accepted."""
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(0)\n")
    told = run(
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import json, types\n"
        "from pyspark.sql.types import DoubleType, StructType, UserDefinedType\n"
        "mine = sys.modules['mine'] = types.ModuleType('mine')\n"
        "mine.Point = type('Point', (UserDefinedType,), {'sqlType': classmethod(lambda cls: DoubleType())})\n"
        "mine.call = sys.exit\n"
        "hostile = ('ends.X', 'venv.__main__.X', 'X', 'sys.exit', 'mine.call')\n"
        "for name in (*hostile, 'mine.Point', 'pyspark.ml.linalg.VectorUDT'):\n"
        "    kind = {'type': 'udt', 'pyClass': name, 'serializedClass': '', 'sqlType': 'double'}\n"
        "    field = {'name': 'a', 'type': kind, 'nullable': True, 'metadata': {}}\n"
        "    try:\n"
        "        print(type(StructType.fromJson({'type': 'struct', 'fields': [field]})[0].dataType).__name__)\n"
        "    except TypeError as error:\n"
        "        print('import' in str(error), name in str(error))\n"
    )
    assert told == ["True True"] * 5 + ["Point", "VectorUDT"]
