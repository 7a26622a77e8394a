"""The driver's server forks a fresh Python process for each job, reports its end, and ends with the JVM."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import handler.driver.server
from handler.outcome.evidence import own_exit
from safewriter.record.journal import Journal
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SERVER = Path(handler.driver.server.__file__)
PACKAGES = Path(pyspark.__file__).parents[1]


class Server:
    """The process that forks drivers, as the JVM starts it. Its output and the drivers' output go to a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = folder / "printed"
        self.journal = Journal(folder / "journal")
        with self.printed.open("wb") as printed:
            self.process = subprocess.Popen(
                [sys.executable, str(SERVER)],
                env={
                    "PYTHONPATH": str(PACKAGES),
                    "PYTHONUNBUFFERED": "1",
                    "SOAL_JOURNAL": str(folder / "journal"),
                },
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.PIPE,
            )

    def ask(self, script: str, *arguments: str) -> None:
        path = self.folder / f"{len(list(self.folder.glob('*.py')))}.py"
        path.write_text(script, encoding="utf-8")
        body = "\0".join(["0", "secret", str(path), *arguments]).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(struct.pack(">i", len(body)) + body)
        self.process.stdin.flush()

    def answer(self) -> int:
        assert self.process.stderr is not None
        return int(struct.unpack(">i", self.process.stderr.read(4))[0])

    def exits(self) -> list[tuple[str, object]]:
        """The exit codes in the journal, by event."""
        entries = [(entry.event, entry.fields.get("exitCode")) for entry in self.journal.entries()]
        return [entry for entry in entries if entry[0] in ("python_exited", "driver_ended")]

    def run(self, script: str, *arguments: str) -> tuple[int, list[str]]:
        before = self.printed.stat().st_size
        self.ask(script, *arguments)
        return self.answer(), self.printed.read_bytes()[before:].decode().splitlines()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    with server.journal:
        yield server
    server.process.kill()
    server.process.wait()
    for pipe in (server.process.stdin, server.process.stderr):
        assert pipe is not None
        pipe.close()


def test_it_says_when_it_could_begin(server: Server) -> None:
    """It answers repeatedly, and starts no job for that."""
    assert server.process.stdin is not None
    for _ in range(2):
        server.process.stdin.write(struct.pack(">i", 0))
        server.process.stdin.flush()
        assert server.answer() == 0
    assert server.run("print('a job')") == (0, ["a job"])


def test_each_job_has_a_process_of_its_own(server: Server) -> None:
    """It shares no module, variable or random number with the previous job."""
    script = (
        "import os, random, sys\n"
        "print(sys.argv[1:], 'left' in sys.modules, os.environ.get('LEFT'), 'pyspark' in sys.modules)\n"
        "print(random.random())\n"
        "sys.modules['left'] = os; os.environ['LEFT'] = '1'\n"
    )
    code, first = server.run(script, "a b", "")
    assert (code, first[0]) == (0, "['a b', ''] False None True")
    code, second = server.run(script)
    assert (code, second[0]) == (0, "[] False None True")
    assert first[1] != second[1]


def test_the_job_s_own_modules_win_in_each_job(server: Server) -> None:
    """From the second job on, the server has already imported the guard's modules."""
    (server.folder / "jmespath.py").write_text("OWN = True", encoding="utf-8")
    script = "import jmespath; print(getattr(jmespath, 'OWN', False))"
    assert [server.run(script) for _ in range(2)] == [(0, ["True"])] * 2


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(7)", 7),
        ("raise ValueError", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM),
    ],
)
def test_the_answer_is_how_the_driver_ended(server: Server, ending: str, code: int) -> None:
    """A signal counts from 128 on, as in Java; the server still serves the next job."""
    assert server.run(f"import os, signal, sys\n{ending}")[0] == code
    assert server.run("pass")[0] == 0


def test_the_end_is_on_record_before_the_answer(server: Server) -> None:
    """Each driver's exit code, or the signal that ended it, also where the job deletes the journal."""
    assert server.run("raise SystemExit(3)")[0] == 3
    assert server.exits() == [("python_exited", 3), ("driver_ended", 3)]
    assert server.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")[0] == 137
    assert server.exits()[2:] == [("driver_ended", -9)]
    assert server.run("import os; os.unlink(os.environ['SOAL_JOURNAL'])") == (0, [])
    assert server.exits()[3:] == [("driver_ended", 0)]
    assert server.run("pass") == (0, [])


def test_a_driver_with_a_thread_that_runs_has_not_ended(server: Server) -> None:
    """Its main thread has noted its exit code; the process ends after its last thread that is no daemon."""
    server.ask(
        "import os, sys, threading, time\n"
        "def work():\n"
        "    while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "threading.Thread(target=work).start()\n",
        str(server.folder / "go"),
    )
    assert until(lambda: server.exits() == [("python_exited", 0)])
    assert own_exit(server.journal.entries()) is None
    (server.folder / "go").touch()
    assert server.answer() == 0
    assert own_exit(server.journal.entries()) == 0


@pytest.mark.parametrize("ending", ["sys.exit(0)", "raise ValueError"])
def test_a_process_that_the_script_has_forked_says_nothing_about_its_end(server: Server, ending: str) -> None:
    """It runs out of the same code as the driver, with an exit code of its own."""
    code, _ = server.run(f"import os, sys\nif os.fork() == 0:\n    {ending}\nos.wait()\nsys.exit(3)\n")
    assert code == 3
    assert server.exits() == [("python_exited", 3), ("driver_ended", 3)]
    assert not any(entry.event == "uncaught" for entry in server.journal.entries())


def test_the_output_is_for_the_next_job_as_it_was(server: Server) -> None:
    """A job's asyncio sets O_NONBLOCK on it: then Java and all jobs, which have the same pipe, would lose lines."""
    assert server.run("import os; os.set_blocking(1, False)")[0] == 0
    flags = int(re.findall(r"flags:\s*(\w+)", Path(f"/proc/{server.process.pid}/fdinfo/1").read_text())[0], 8)
    assert not flags & os.O_NONBLOCK
    assert server.run("import os; print(os.get_blocking(1), os.get_blocking(2))") == (0, ["True True"])


def test_the_output_is_as_it_was_also_after_a_process_that_a_job_has_left(server: Server) -> None:
    """It has ended by itself, so that the machine is used again, but after the job."""
    code, _ = server.run(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "    os.set_blocking(1, False)\n"
        "    os.rename(sys.argv[1], sys.argv[1] + '.seen')\n"
        "    os._exit(0)\n",
        str(server.folder / "go"),
    )
    assert code == 0
    (server.folder / "go").touch()
    assert until((server.folder / "go.seen").exists)
    assert server.run("import os; print(os.get_blocking(1), os.get_blocking(2))") == (0, ["True True"])


def test_a_signal_for_all_leaves_the_end_to_the_driver(server: Server) -> None:
    """The driver would die with the server, and may first have to settle a write."""
    server.ask(
        "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\nprint('ready')\nsignal.pause()\n"
    )
    assert until(lambda: b"ready" in server.printed.read_bytes())
    (driver,) = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    server.process.terminate()
    os.kill(int(driver), signal.SIGTERM)
    assert server.answer() == 5


def test_a_driver_dies_with_its_server(server: Server) -> None:
    """A server dies with the JVM, when its input ends."""
    server.ask("import signal\nprint('ready')\nsignal.pause()")
    assert until(lambda: b"ready" in server.printed.read_bytes())
    (driver,) = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    server.process.kill()
    server.process.wait()
    assert until(lambda: not Path(f"/proc/{driver}").exists() or " Z " in Path(f"/proc/{driver}/stat").read_text())


def test_the_server_ends_with_its_input(server: Server) -> None:
    """Its input ends when the JVM exits."""
    server.process.communicate()
    assert server.process.returncode == 0


def test_a_line_is_written_at_once(server: Server) -> None:
    """The JVM writes to the same pipe, and its output would mix in."""
    _, printed = server.run("import sys\nprint(sys.stdout.line_buffering, sys.stdout.write_through)")
    assert printed == ["True False"]
