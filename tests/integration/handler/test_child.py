"""Real children, plain Python: whatever they do, the answer is true and nothing of them is left."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from handler.process.child import Ladder, Stop, start
from handler.process.log import JobLog
from handler.redaction.redact import Redactor
from handler.spark.command import Command
from safewriter.deadline import epoch_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.process.child import Ended

NEVER = Ladder(terminate_at_ms=2**60, kill_at_ms=2**60)
FORK_AWAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        open("away", "x").close()
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists("away"):
    time.sleep(0.01)
"""


class Since:
    """A clock that stands at 0 until the child has printed a line, and then counts from 1."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._start_ms: int | None = None

    def __call__(self) -> int:
        if self._start_ms is None:
            self._start_ms = epoch_ms() - 1 if self._log.lines else None
        return 0 if self._start_ms is None else epoch_ms() - self._start_ms


class Log:
    def __init__(self, known: tuple[str, ...] = (), logged_max: int = 2**24) -> None:
        self.lines: list[str] = []
        self.metrics: list[str] = []
        self.output = JobLog(Redactor(known), log=self.lines.append, metric=self.metrics.append, logged_max=logged_max)


def run(directory: Path, code: str, log: Log, ladder: Ladder = NEVER, **environment: str) -> Ended:
    """The ladder's times are milliseconds after the child's first line."""
    command = Command((sys.executable, "-u", "-c", code), environment, directory)
    clock = Since(log)
    with start(command, log.output, clock=clock) as child:
        return child.supervise(ladder, clock=clock)


@contextmanager
def nothing_left() -> Iterator[None]:
    """At the end no process is below this one that was not there before, dead or alive."""
    before = _all_below()
    yield
    assert _all_below() - before == set()


def _all_below() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def test_an_exit_code_is_passed_on(tmp_path: Path) -> None:
    """A child that exits 3 is reported with 3, and no signal."""
    with nothing_left():
        ended = run(tmp_path, "raise SystemExit(3)", Log())
    assert (ended.exit_code, ended.signal, ended.stop) == (3, None, None)


def test_a_signal_is_told_from_an_exit_code(tmp_path: Path) -> None:
    """A child that dies by SIGKILL has no exit code."""
    with nothing_left():
        ended = run(tmp_path, "import os; os.kill(os.getpid(), 9)", Log())
    assert (ended.exit_code, ended.signal) == (None, 9)


def test_output_of_both_streams_arrives_in_order(tmp_path: Path) -> None:
    """Stdout and stderr come line by line; a last line without an end is a line."""
    log = Log()
    run(tmp_path, "import sys; print('one'); print('two', file=sys.stderr); print('three', end='')", log)
    assert log.lines == ["one", "two", "three"]


def test_a_double_forked_process_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    """What has left the process group and lost its parent is found all the same, after a normal end of the child."""
    log = Log()
    with nothing_left():
        ended = run(tmp_path, FORK_AWAY, log)
    assert ended.exit_code == 0
    assert not psutil.pid_exists(int(log.lines[0]))


def test_a_process_that_forks_again_and_again_is_ended(tmp_path: Path) -> None:
    """A process that starts another in a new session and ends, for ever, is caught by the loop."""
    code = """
import os
if os.fork() == 0:
    for generation in range(10**9):
        if os.fork():
            os._exit(0)
        os.setsid()
        if generation == 20:
            open("away", "x").close()
while not os.path.exists("away"):
    pass
"""
    with nothing_left():
        ended = run(tmp_path, code, Log())
    assert ended.exit_code == 0
    assert ended.survivors == frozenset()


def test_sigterm_comes_first_and_lets_the_child_finish(tmp_path: Path) -> None:
    """A child that answers SIGTERM ends by itself, and is reported as terminated."""
    code = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(7))\nprint('up')\ntime.sleep(600)"
    with nothing_left():
        ended = run(tmp_path, code, Log(), Ladder(1, 60_000))
    assert (ended.exit_code, ended.stop) == (7, Stop.TERMINATED)


def test_a_child_that_ignores_sigterm_is_killed_with_all_its_children(tmp_path: Path) -> None:
    """SIGKILL follows SIGTERM, also for grandchildren in sessions of their own."""
    log = Log()
    code = "import signal; signal.signal(15, signal.SIG_IGN)\n" + FORK_AWAY + "time.sleep(600)"
    with nothing_left():
        ended = run(tmp_path, code, log, Ladder(1, 300))
    assert (ended.exit_code, ended.signal, ended.stop) == (None, signal.SIGKILL, Stop.KILLED)
    assert not psutil.pid_exists(int(log.lines[0]))
    assert ended.ended_ms >= 300


def test_a_stopped_child_is_killed(tmp_path: Path) -> None:
    """A child that has stopped itself cannot hold the ladder up."""
    with nothing_left():
        ended = run(tmp_path, "import os; print('up'); os.kill(os.getpid(), 19)", Log(), Ladder(1, 300))
    assert ended.stop is Stop.KILLED


def test_a_ladder_that_is_over_before_it_began_kills_at_once(tmp_path: Path) -> None:
    """A deadline of zero is a deadline."""
    with nothing_left():
        ended = run(tmp_path, "import time; time.sleep(600)", Log(), Ladder(0, 0))
    assert ended.stop is Stop.KILLED


def test_a_flood_of_output_is_drained_and_bounded(tmp_path: Path) -> None:
    """200 MB of stdout neither block the child nor fill the log; the last lines are kept."""
    log = Log(logged_max=100_000)
    code = """
import sys
block = (b"x" * 99 + b"\\n") * 1000
for _ in range(2000): sys.stdout.buffer.write(block)
sys.stdout.buffer.write(b"the end\\n")
"""
    ended = run(tmp_path, code, log)
    assert ended.exit_code == 0
    assert sum(map(len, log.lines)) < 200_000
    assert log.output.lines_dropped > 1_900_000
    assert log.output.tail()[-1] == "the end"


def test_one_endless_line_is_cut(tmp_path: Path) -> None:
    """50 MB without a line end are one cut line, and what follows the line end is read again."""
    log = Log()
    run(tmp_path, "import sys\nfor _ in range(50): sys.stdout.write('y' * 2**20)\nprint()\nprint('after')", log)
    assert len(log.lines) == 2
    assert len(log.lines[0]) < 10_000
    assert log.lines[1] == "after"


def test_binary_output_is_survived(tmp_path: Path) -> None:
    """Bytes that are not UTF-8, NULs among them, become text."""
    log = Log()
    run(tmp_path, "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'\\nok\\n')", log)
    assert log.lines[-1] == "ok"
    assert not any("\0" in line for line in log.lines)


def test_printed_secrets_reach_neither_log_nor_result(tmp_path: Path) -> None:
    """Secrets of the environment and in the usual forms are masked in streamed lines and in the tail."""
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    log = Log(known=("correct-horse-battery",))
    code = f"""
print("key", {secret!r}); print("AKIAIOSFODNN7EXAMPLE"); print("it is correct-horse-battery, no more")
print("-----BEGIN RSA PRIVATE KEY-----\\nMIIEowIBAAKCAQEA\\n-----END RSA PRIVATE KEY-----")
"""
    run(tmp_path, code, log)
    seen = "\n".join((*log.lines, *log.output.tail()))
    for text in (secret, "AKIAIOSFODNN7EXAMPLE", "correct-horse-battery", "MIIEowIBAAKCAQEA"):
        assert text not in seen
    assert "no more" in seen


def test_metric_lines_pass_as_they_are(tmp_path: Path) -> None:
    """A line in the embedded metric format is not a log line, however long it is."""
    log = Log()
    code = "import json; print(json.dumps({'_aws': {'CloudWatchMetrics': []}, 'Rows': 5, 'note': 'n' * 20000}))"
    run(tmp_path, code, log)
    assert log.lines == []
    assert log.metrics[0].endswith("n" * 20000 + '"}')


def test_the_environment_and_directory_are_the_command_s_own(tmp_path: Path) -> None:
    """Nothing is inherited but what the command names."""
    log = Log()
    code = "import os; print(sorted(n for n in os.environ if n != 'LC_CTYPE')); print(os.getcwd())"
    run(tmp_path, code, log, GIVEN="1")
    assert log.lines == ["['GIVEN']", str(tmp_path)]


def test_stdin_stays_open_until_the_supervisor_is_gone(tmp_path: Path) -> None:
    """A child that waits on its stdin waits; it is the ladder that ends it."""
    log = Log()
    ended = run(tmp_path, "import sys; print('up'); sys.stdin.read(); print('end')", log, Ladder(300, 60_000))
    assert log.lines == ["up"]
    assert ended.signal == signal.SIGTERM


def test_the_child_dies_with_its_supervisor(tmp_path: Path) -> None:
    """SIGKILL of the handler, which it cannot see coming, ends a child in a session of its own, too."""
    inner = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    outer = f"""
import sys, pathlib
from handler.process.child import Ladder, start
from handler.process.log import JobLog
from handler.redaction.redact import Redactor
from handler.spark.command import Command
out = JobLog(Redactor(), log=lambda line: print(line, flush=True), metric=print)
command = Command((sys.executable, "-c", {inner!r}), {{}}, pathlib.Path({str(tmp_path)!r}))
with start(command, out, clock=lambda: 0) as child:
    child.supervise(Ladder(2**60, 2**60), clock=lambda: 0)
"""
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", outer], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    child.wait(10)


def test_processes_that_were_there_before_are_left_alone(tmp_path: Path) -> None:
    """Only what came into being under the command is ended."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as bystander:
        run(tmp_path, "pass", Log())
        assert bystander.poll() is None
        bystander.kill()


def test_the_beat_goes_on_while_the_child_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`beat` is called again and again, on a thread of its own, and no more afterwards."""
    monkeypatch.setattr("handler.process.child._BEAT_S", 0.02)
    beats: list[int] = []
    command = Command(
        (sys.executable, "-c", "import os, time\nwhile not os.path.exists('done'): time.sleep(0.01)"), {}, tmp_path
    )

    def beat() -> bool:
        beats.append(1)
        if len(beats) == 3:
            (tmp_path / "done").touch()
        return True

    with start(command, Log().output, clock=epoch_ms) as child:
        child.supervise(NEVER, clock=epoch_ms, beat=beat)
    assert len(beats) >= 3


@pytest.mark.parametrize(
    ("handler", "signal_number"), [("signal.SIG_DFL", signal.SIGTERM), ("signal.SIG_IGN", signal.SIGKILL)]
)
def test_a_cancelled_child_is_ended_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handler: str, signal_number: int
) -> None:
    """As soon as a beat says so, long before the deadline; one that does not heed SIGTERM is killed."""
    monkeypatch.setattr("handler.process.child._BEAT_S", 0.02)
    monkeypatch.setattr("handler.process.child._CANCEL_GRACE_MS", 50)
    text = f"import signal, time; signal.signal(signal.SIGTERM, {handler}); print('up', flush=True); time.sleep(600)"
    log = Log()
    command = Command((sys.executable, "-c", text), {}, tmp_path)
    with nothing_left(), start(command, log.output, clock=epoch_ms) as child:
        ended = child.supervise(NEVER, clock=epoch_ms, beat=lambda: not log.lines)
    assert (ended.stop, ended.exit_code, ended.signal) == (Stop.CANCELLED, None, signal_number)


def test_a_command_that_does_not_exist_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """The error of the operating system is passed on."""
    command = Command(("/no/such/java",), {}, tmp_path)
    with nothing_left(), pytest.raises(FileNotFoundError), start(command, Log().output, clock=epoch_ms):
        raise AssertionError


def test_memory_of_the_whole_tree_is_seen(tmp_path: Path) -> None:
    """The peak counts the child's memory beside the supervisor's own."""
    code = "import time; block = b'x' * 200 * 2**20; print('up'); time.sleep(600)"
    ended = run(tmp_path, code, Log(), Ladder(1, 1))
    assert ended.peak_mb >= 200
