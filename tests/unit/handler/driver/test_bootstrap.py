"""The driver's bootstrap runs a script as a direct start would, and records its error or exit code in the journal."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import handler.driver.bootstrap
from safewriter.record.journal import Journal

pytestmark = pytest.mark.slow

BOOTSTRAP = Path(handler.driver.bootstrap.__file__)
PACKAGES = Path(pyspark.__file__).parents[2]


class Driver:
    """A Python driver as Spark starts one, without Spark."""

    def __init__(self, tmp_path: Path, script: str) -> None:
        (tmp_path / "scripts").mkdir()
        self.script = tmp_path / "scripts" / "job.py"
        self.script.write_text(script, encoding="utf-8")
        self.journal = tmp_path / "journal.jsonl"
        self._supervisors = Journal(self.journal)
        self.environment: dict[str, str] = {}
        self.command = [sys.executable, str(BOOTSTRAP)]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.command, str(self.script), *arguments],
            env={"PYTHONPATH": str(PACKAGES), "SOAL_JOURNAL": str(self.journal), **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as process:
            stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def entries(self) -> list[tuple[str, dict[str, object]]]:
        return [(entry.event, entry.fields) for entry in self._supervisors.entries(since=1)]


def test_the_script_is_main(tmp_path: Path) -> None:
    """Name, file, arguments and import path are those of a direct start; the script's globals hold no name of SoAL."""
    driver = Driver(
        tmp_path,
        """
print(sorted(name for name in globals() if not name.startswith("__")))
import pickle, sys
class Thing: pass
assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
print(__name__, __file__ == sys.argv[0], sys.argv[1:], sys.path[0] == __file__.rsplit("/", 1)[0])
""",
    )
    done = driver.run("a b", "--c")
    assert done.stdout.splitlines() == ["[]", "__main__ True ['a b', '--c'] True"], done.stderr
    assert driver.entries()[0][0] == "python_started"
    assert driver.entries()[-1] == ("python_exited", {"exitCode": 0})


def test_the_job_s_file_is_read_and_removed(tmp_path: Path) -> None:
    """The file has the function's variables, and the properties beside it may hold secrets: an argument may name a
    path.
    """
    driver = Driver(
        tmp_path,
        "import os; print(os.environ['MODE'], 'SOAL_JOB' in os.environ, sorted(os.listdir(os.environ['HERE'])))",
    )
    here = tmp_path / "here"
    here.mkdir()
    job, properties = here / "job.json", here / "spark.properties"
    properties.touch()
    variables = {"MODE": "prod", "HERE": str(here)}
    job.write_text(
        json.dumps({"variables": variables, "archives": [], "properties": str(properties)}), encoding="utf-8"
    )
    driver.environment["SOAL_JOB"] = str(job)
    done = driver.run()
    assert done.stdout == "prod False ['variables']\n", done.stderr
    assert (here / "variables").is_socket()  # for Python workers


def test_the_script_waits_for_the_handler(tmp_path: Path) -> None:
    """Python starts beside the handler's first steps, and does not even read the script before they are done."""
    driver = Driver(tmp_path, "print('too early')")
    go = tmp_path / "go"
    driver.environment["SOAL_GO"] = str(go)
    with driver.start() as process:
        while not any(event == "python_started" for event, _ in driver.entries()):
            assert process.poll() is None
        driver.script.write_text("print('in time')", encoding="utf-8")
        go.touch()
        assert process.communicate()[0] == "in time\n"


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit('text')", 1), ("sys.exit(257)", 1), ("raise SystemExit(7)", 7)],
)
def test_the_script_s_own_exit_is_unchanged(tmp_path: Path, end: str, code: int) -> None:
    """The journal records the exit code."""
    driver = Driver(tmp_path, f"import sys\n{end}\n")
    done = driver.run()
    assert done.returncode == code
    name, fields = driver.entries()[-1]
    assert (name, fields["exitCode"]) == ("python_exited", code)


@pytest.mark.parametrize(
    ("script", "message", "of_arguments"),
    [
        ("import sys\nsys.exit('no rows')\n", "no rows", False),
        ("import sys\nsys.exit(3)\n", None, False),
        (
            "try: 1 / 0\nexcept ArithmeticError: __import__('sys').exit(1)\n",
            "while handling ZeroDivisionError: division by zero",
            False,
        ),
        (
            "try: 1 / 0\nexcept ArithmeticError: __import__('sys').exit('no rows')\n",
            "no rows; while handling ZeroDivisionError: division by zero",
            False,
        ),
        ("import argparse\nargparse.ArgumentParser().parse_args(['--x'])\n", "unrecognized arguments: --x", True),
    ],
)
def test_the_reason_of_an_exit_is_in_the_journal(
    tmp_path: Path,
    script: str,
    message: str | None,
    of_arguments: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    """A parser of arguments tells it on stderr alone."""
    driver = Driver(tmp_path, script)
    driver.run()
    _, fields = driver.entries()[-1]
    assert (fields["message"], fields["line"], fields["ofArguments"]) == (message, "job.py, line 2", of_arguments)


def test_a_traceback_begins_with_the_script(tmp_path: Path) -> None:
    """The journal has the error; the exit code is 1."""
    driver = Driver(tmp_path, "def f():\n    1 / 0\nf()\n")
    done = driver.run()
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert 'job.py", line 3' in lines[1]
    assert "bootstrap" not in done.stderr
    uncaught = dict(driver.entries())["uncaught"]
    assert (uncaught["type"], uncaught["message"], uncaught["exitCode"]) == ("ZeroDivisionError", "division by zero", 1)
    assert uncaught["line"] == "job.py, line 2"


def test_an_error_whose_text_cannot_be_had_is_the_script_s_all_the_same(tmp_path: Path) -> None:
    """A class of its own may raise anything when it is asked."""
    driver = Driver(tmp_path, "class E(Exception):\n    def __str__(self):\n        raise KeyError\nraise E\n")
    assert driver.run().returncode == 1
    uncaught = dict(driver.entries())["uncaught"]
    assert (uncaught["type"], uncaught["message"]) == ("E", "")


def test_an_error_that_carries_an_exit_code_ends_the_driver_with_it(tmp_path: Path) -> None:
    """SafeWriter's errors carry one, by which handler and caller distinguish "try again" from a failure."""
    driver = Driver(tmp_path, "from safewriter import AnotherAttemptError\nraise AnotherAttemptError('busy')\n")
    assert driver.run().returncode == 75
    uncaught = dict(driver.entries())["uncaught"]
    assert (uncaught["type"], uncaught["exitCode"]) == ("AnotherAttemptError", 75)


def test_a_script_that_ends_at_once_waits_for_its_libraries(tmp_path: Path) -> None:
    """A thread that still imports them when Python exits crashes the process with SIGSEGV, whatever its exit code."""
    driver = Driver(
        tmp_path,
        """
import sys  # not of safewriter alone
from pyspark.core.context import SparkContext
try:
    SparkContext._initialize_context(None, None)
except AttributeError:
    sys.exit(3)
""",
    )
    driver.environment["PYSPARK_GATEWAY_PORT"] = "1"
    slow = tmp_path / "libraries" / "botocore" / "__init__.py"
    slow.parent.mkdir(parents=True)
    slow.write_text(
        f"""
from pathlib import Path
from threading import Event
while "python_exited" not in Path({str(driver.journal)!r}).read_text():
    Event().wait(0.005)
Event().wait(0.3)
Path({str(tmp_path / "imported")!r}).touch()
""",
        encoding="utf-8",
    )
    driver.environment["PYTHONPATH"] = f"{slow.parents[1]}:{PACKAGES}"
    assert driver.run().returncode == 3
    assert (tmp_path / "imported").exists()


@pytest.mark.parametrize("code", ["True", "0", "300", "'x'"])
def test_a_strange_exit_code_of_an_error_is_1(tmp_path: Path, code: str) -> None:
    """An uncaught error never ends as a success."""
    driver = Driver(tmp_path, f"class E(Exception): exit_code = {code}\nraise E\n")
    assert driver.run().returncode == 1


def test_a_syntax_error_is_the_script_s(tmp_path: Path) -> None:
    """The traceback shows the script, and no frame of the driver that compiles it."""
    done = Driver(tmp_path, "x = (\n").run()
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "bootstrap" not in done.stderr


def test_a_hook_of_the_script_s_own_is_called(tmp_path: Path) -> None:
    """The script may set sys.excepthook."""
    done = Driver(tmp_path, "import sys\nsys.excepthook = lambda *_: print('mine')\n1 / 0\n").run()
    assert (done.stdout, done.returncode) == ("mine\n", 1)


def test_the_session_is_noticed_without_touching_pyspark(tmp_path: Path) -> None:
    """The driver reads PySpark's own state."""
    driver = Driver(
        tmp_path,
        "import sys, types, os\n"
        "module = types.ModuleType('pyspark.sql.session')\n"
        "module.SparkSession = type('SparkSession', (), {'_instantiatedSession': None})\n"
        "sys.modules['pyspark.sql.session'] = module\n"
        "module.SparkSession._instantiatedSession = object()\n"
        "while b'session_ready' not in open(os.environ['SOAL_JOURNAL'], 'rb').read(): pass\n",
    )
    assert driver.run().returncode == 0
    assert [event for event, _ in driver.entries()] == ["python_started", "session_ready", "python_exited"]


def test_two_attempts_draw_different_numbers_from_equal_bytes_of_the_kernel(tmp_path: Path) -> None:
    """Two copies of a snapshot may get them: Python seeds `random` with them alone."""
    (tmp_path / "kernel").mkdir()
    equal = "import os, random, time\nos.urandom = bytes\ntime.time_ns = lambda: 1\nrandom.seed(0)\n"
    (tmp_path / "kernel" / "sitecustomize.py").write_text(equal, encoding="utf-8")
    driver = Driver(tmp_path, "import random\nprint(random.random())")
    drawn = []
    for request_id in ("microvm-1", "microvm-2"):
        driver.environment = {"PYTHONPATH": f"{tmp_path}/kernel:{PACKAGES}", "SOAL_REQUEST_ID": request_id}
        drawn.append(driver.run().stdout)
    assert drawn[0] != drawn[1]


def test_pyspark_comes_from_where_it_is_installed(tmp_path: Path) -> None:
    """Spark's own uncompiled copies are no longer on the path."""
    spark_home = tmp_path / "spark"
    copies = [spark_home / "python" / "lib" / "pyspark.zip", spark_home / "jars" / "spark-core.jar"]
    driver = Driver(tmp_path, "import sys; print(*sys.path)")
    driver.environment = {"SPARK_HOME": str(spark_home), "PYTHONPATH": ":".join(map(str, [*copies, PACKAGES]))}
    path = driver.run().stdout.split()
    assert str(PACKAGES) in path
    assert not {str(copy) for copy in copies} & set(path)


@pytest.mark.parametrize(("first_line", "prepares"), [("import safewriter", True), ("", False)])
def test_a_guarded_script_has_its_needs_prepared_with_the_first_context(
    tmp_path: Path, *, first_line: str, prepares: bool
) -> None:
    """An unguarded script keeps its core to itself."""
    driver = Driver(
        tmp_path,
        f"{first_line}\n"
        "from pyspark.core.context import SparkContext\n"
        "print('warm_up' in SparkContext._initialize_context.__code__.co_filename)\n",
    )
    driver.environment["PYSPARK_GATEWAY_PORT"] = "1"
    assert driver.run().stdout == f"{prepares}\n"


def test_the_driver_has_one_thread_beside_the_script_s(tmp_path: Path) -> None:
    """A second thread would slow down each call of the script to the JVM."""
    driver = Driver(tmp_path, "import safewriter, threading; print(*(thread.name for thread in threading.enumerate()))")
    assert driver.run().stdout.split() == ["MainThread", "soal-session"]


def test_the_job_s_modules_win_over_ours(tmp_path: Path) -> None:
    """This holds for modules with names of SoAL and for packages without `__init__`; no module of SoAL is imported
    beforehand, and the journal still records the end.
    """
    driver = Driver(
        tmp_path,
        """
import sys
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("handler", "scripts", "infra")))
import handler, infra, team.daily
from safewriter import SettingError
print(handler.WORD, infra.WORD, team.daily.WORD)
raise SettingError("X", "is bad")
""",
    )
    folder = driver.script.parent
    for name in ("handler.py", "infra.py", "team/daily.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"WORD = 'job {name}'", encoding="utf-8")
    done = driver.run()
    assert done.stdout.splitlines() == ["[]", "job handler.py job infra.py job team/daily.py"], done.stderr
    entries = dict(driver.entries())
    assert (entries["uncaught"]["type"], entries["python_exited"]["exitCode"]) == ("SettingError", done.returncode)


def test_a_module_of_the_job_s_does_not_keep_the_driver_from_starting(tmp_path: Path) -> None:
    """This holds even for a module that comes first on the import path, as a Python file of the job does."""
    driver = Driver(tmp_path, "import handler")
    (driver.script.parent / "handler.py").write_text("print('the job has', __name__)", encoding="utf-8")
    driver.environment["PYTHONPATH"] = f"{driver.script.parent}:{PACKAGES}"
    done = driver.run()
    assert (done.returncode, done.stdout) == (0, "the job has handler\n"), done.stderr


def test_of_ours_a_script_imports_the_guard_alone(tmp_path: Path) -> None:
    """As in the image, where the handler is apart from the installed packages, no other module of it can be found."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "function").mkdir()
    shutil.copytree(BOOTSTRAP.parents[1], tmp_path / "function" / "handler")
    shutil.copytree(BOOTSTRAP.parents[2] / "safewriter", tmp_path / "installed" / "safewriter")
    driver = Driver(
        tmp_path,
        """
import importlib.util
print(*(name for name in ("safewriter", "handler", "scripts", "infra", "bootstrap") if importlib.util.find_spec(name)))
""",
    )
    driver.environment["PYTHONPATH"] = str(tmp_path / "installed")
    driver.command = [
        getattr(sys, "_base_executable"),  # noqa: B009 - a Python without what is installed here
        str(tmp_path / "function" / "handler" / "driver" / "bootstrap.py"),
    ]
    done = driver.run()
    assert done.stdout == "safewriter\n", done.stderr
