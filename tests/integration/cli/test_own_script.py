"""The README's example, and a script that fails: `soal local run` as a new user calls it."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from .conftest import Soal

pytestmark = [pytest.mark.spark, pytest.mark.emulator]

LINES_MAX = 15


def test_the_readmes_example_runs_and_its_table_can_be_read_as_the_command_says(own_soal: Soal) -> None:
    """Without a local S3 before, the example's commands run as they are; the last line prints the rows of the file."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (commands,) = re.findall(r"^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert len(script.splitlines()) <= LINES_MAX
    folder = own_soal.home.parent
    (folder / "my_job.py").write_text(script, encoding="utf-8")
    made, command = commands.strip().splitlines()
    subprocess.run(["sh", "-e", "-c", made], cwd=folder, check=True)
    words = shlex.split(command)
    assert words[0] == ".venv/bin/soal"
    answer = own_soal(*words[1:])
    assert answer.code == 0, answer
    assert "SUCCESS" in answer.out
    said = answer.err.splitlines()
    assert "started the local S3; end it, and delete its data, with: soal local down" in said
    assert "written: s3a://soal-lake/rooms (Delta)" in said
    read = subprocess.run(
        shlex.split(said[-1].removeprefix("read it: ")), cwd=folder, capture_output=True, text=True, check=True
    )
    assert [line.split()[-2:] for line in read.stdout.splitlines()] == [["id", "city"], ["1", "Rome"], ["2", "Bern"]]


def test_the_commands_of_the_quick_start_run_as_they_are(own_soal: Soal) -> None:
    """In the folder of a clone they make a file, run a script with it, and show and end the local S3."""
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8").partition("## Run your own script")[2]
    commands = page.partition("```bash\n")[2].partition("```")[0].replace("\\\n", " ")
    (own_soal.home.parent / "scripts").symlink_to(ROOT / "scripts")
    answers = [own_soal(*shlex.split(line, comments=True)[1:]) for line in commands.strip().splitlines()]
    assert [answer.code for answer in answers] == [0] * 4, answers
    assert "written: s3a://soal-lake/rooms (Delta)" in answers[1].err


def test_an_iceberg_table_can_be_read_as_the_command_says(own_soal: Soal) -> None:
    """The command knows the table's newest metadata; the log is shown, and what the script is given comes behind it."""
    assert own_soal("local", "up", "--iceberg").code == 0
    script = own_soal.home.parent / "ice.py"
    script.write_text(
        "import sys\nfrom pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
        "print('given', sys.argv[1:])\nspark.sql('CREATE NAMESPACE local.db')\n"
        "spark.range(3).writeTo('local.db.t').create()\nspark.range(3, 5).writeTo('local.db.t').append()\n",
        encoding="utf-8",
    )
    answer = own_soal("local", "run", "--memory-mb", "2048", "ice.py", "--json", "--env=x")
    assert answer.code == 0, answer
    assert "given ['--json', '--env=x']" in answer.err
    read = answer.err.splitlines()[-1].removeprefix("read it: ")
    printed = subprocess.run(shlex.split(read), capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[-1] for line in printed.splitlines()[1:]) == ["0", "1", "2", "3", "4"]


def test_a_script_that_fails_shows_its_end_once_and_its_run_can_be_continued(own_soal: Soal) -> None:
    """The exit code is that of `soal local invoke`. The log has the script's traceback without Java's frames, which
    stand in a file; the result has the cause. By its run key the next call is the run's second attempt.
    """
    script = own_soal.home.parent / "fails.py"
    script.write_text(
        "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()._jvm.java.util.ArrayList().get(0)\n",
        encoding="utf-8",
    )
    answer = own_soal("local", "run", "fails.py", "rows.csv")
    assert answer.code == 1
    said = answer.err.splitlines()
    assert said[0].startswith("note: rows.csv is no file here")
    assert answer.out.startswith("FAILED  Py4JJavaError: ")
    assert "IndexOutOfBoundsException" in answer.out.splitlines()[0]
    assert answer.out.count("IndexOutOfBoundsException") == 1
    assert "fails.py, line 2" in answer.out
    assert any(line.startswith("| py4j.protocol.Py4JJavaError") for line in said)
    assert not any(line.startswith("| \tat ") for line in said)
    assert "JobFailed" not in answer.err
    *_, where, again = said
    log = Path(where.removeprefix("the whole log, with Java's stacks: "))
    assert "\n\tat java.base/java.util.ArrayList.get(" in log.read_text(encoding="utf-8")
    words = shlex.split(again.partition(", with ")[2].partition(" before the script")[0])
    assert f"run key: {words[1]}" in said
    script.write_text("print('mended')\n", encoding="utf-8")
    assert own_soal("local", "run", *words, "fails.py", "rows.csv").code == 0
    assert own_soal("runs", "show", words[1], "--local", "--json").json["attempt"] == 2
