"""The end of a child and of all processes that it has started."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from handler.process.child import _CANCEL_GRACE_MS, Shutdown, Stop, start
from handler.process.log import JobLog
from handler.redaction.effort import WITHHELD, Effort
from handler.redaction.known import KnownForms
from handler.redaction.redact import Redactor
from handler.spark.command import Command
from safewriter.deadline import epoch_ms
from safewriter.errors import EXIT_TRY_AGAIN
from tests.integration.handler.children import FORK_AWAY, NEVER, Log, nothing_left, run
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable

_RESTS = """
import os, socket
channel = socket.socket(fileno=0)
while channel.recv(1):
    print("a job", flush=True)
    channel.sendall(b"%d 0\\n" % os.getpid())
"""


def test_a_double_forked_process_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    """The handler finds a process that has left the group and lost its parent, also after a normal end of the child."""
    log = Log()
    with nothing_left():
        ended = run(tmp_path, FORK_AWAY, log)
    assert ended.exit_code == 0
    assert not psutil.pid_exists(int(log.lines[0]))


def test_a_process_that_forks_again_and_again_is_ended(tmp_path: Path) -> None:
    """A process that forks itself into new sessions for minutes is caught by the loop."""
    code = """
import os
if os.fork() == 0:
    for generation in range(100_000):
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
    """A child that answers SIGTERM exits by itself, and is reported as terminated."""
    code = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(7))\nprint('up')\ntime.sleep(600)"
    with nothing_left():
        ended = run(tmp_path, code, Log(), Shutdown(1, 60_000))
    assert (ended.exit_code, ended.stop) == (7, Stop.TERMINATED)


@pytest.mark.parametrize("seen", [None, 0])
def test_the_last_look_at_the_script_s_own_end_is_before_the_signal(tmp_path: Path, seen: int | None) -> None:
    """A witness that comes after it is none: the script may have answered the signal."""
    log = Log()
    code = "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(0))\nprint('up')\ntime.sleep(600)"
    command = Command((sys.executable, "-u", "-c", code), {}, tmp_path)
    alive: list[bool] = []

    def seen_exit() -> int | None:
        alive.append(child.jvm.process.poll() is None)
        return seen if len(alive) == 1 else 0

    with nothing_left(), start(command, log.output, clock=epoch_ms) as child:
        ended = child.supervise(NEVER, clock=epoch_ms, may_go_on=lambda: not log.lines, seen_exit=seen_exit)
    assert (ended.exit_code, ended.stop, ended.own_exit, alive) == (0, Stop.CANCELLED, seen, [True])


def test_a_child_that_ignores_sigterm_is_killed_with_all_its_children(tmp_path: Path) -> None:
    """SIGKILL follows SIGTERM, also for grandchildren in sessions of their own."""
    log = Log()
    code = "import signal; signal.signal(15, signal.SIG_IGN)\n" + FORK_AWAY + "time.sleep(600)"
    with nothing_left():
        ended = run(tmp_path, code, log, Shutdown(1, 300))
    assert (ended.exit_code, ended.signal, ended.stop) == (None, signal.SIGKILL, Stop.KILLED)
    assert not psutil.pid_exists(int(log.lines[0]))
    assert ended.ended_ms >= 300


def test_a_stopped_child_is_killed(tmp_path: Path) -> None:
    """A stopped child cannot delay the shutdown sequence."""
    with nothing_left():
        ended = run(tmp_path, "import os; print('up'); os.kill(os.getpid(), 19)", Log(), Shutdown(1, 300))
    assert ended.stop is Stop.KILLED


def test_a_shutdown_that_is_over_before_it_began_kills_at_once(tmp_path: Path) -> None:
    """A deadline of zero is a deadline."""
    with nothing_left():
        ended = run(tmp_path, "import time; time.sleep(600)", Log(), Shutdown(0, 0))
    assert ended.stop is Stop.KILLED


def test_the_child_dies_with_its_supervisor(tmp_path: Path) -> None:
    """SIGKILL of the handler, which it cannot see coming, kills a child in a session of its own, too."""
    inner = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    outer = f"""
import sys, pathlib
from handler.process.child import Shutdown, start
from handler.process.log import JobLog
from handler.redaction.redact import Redactor
from handler.spark.command import Command
out = JobLog(Redactor(), log=lambda line: print(line, flush=True), metric=print)
command = Command((sys.executable, "-c", {inner!r}), {{}}, pathlib.Path({str(tmp_path)!r}))
with start(command, out, clock=lambda: 0) as child:
    child.supervise(Shutdown(2**60, 2**60), clock=lambda: 0)
"""
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", outer], cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    child.wait(10)


def test_processes_that_were_there_before_are_left_alone(tmp_path: Path) -> None:
    """Only processes that started under the command are killed."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as bystander:
        run(tmp_path, "pass", Log())
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.parametrize(
    ("handler", "signal_number"), [("signal.SIG_DFL", signal.SIGTERM), ("signal.SIG_IGN", signal.SIGKILL)]
)
def test_a_cancelled_child_is_ended_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handler: str, signal_number: int
) -> None:
    """The handler kills it when a heartbeat says so, long before the deadline, by SIGKILL if it ignores SIGTERM."""
    monkeypatch.setattr("handler.process.child._BEAT_S", 0.02)
    monkeypatch.setattr("handler.process.child._CANCEL_GRACE_MS", 50)
    text = f"import signal, time; signal.signal(signal.SIGTERM, {handler}); print('up', flush=True); time.sleep(600)"
    log = Log()
    command = Command((sys.executable, "-c", text), {}, tmp_path)
    with nothing_left(), start(command, log.output, clock=epoch_ms) as child:
        ended = child.supervise(NEVER, clock=epoch_ms, beat=lambda: not log.lines)
    assert (ended.stop, ended.exit_code, ended.signal) == (Stop.CANCELLED, None, signal_number)


def test_a_cancelled_child_may_answer_the_signal(tmp_path: Path) -> None:
    """SIGKILL waits for a grace, which never passes here, however long the answer takes."""
    log = Log()
    code = """
import signal, sys, time
def answer(*_):
    time.sleep(0.5)
    sys.exit(7)
signal.signal(signal.SIGTERM, answer)
print("up", flush=True)
time.sleep(600)
"""
    command = Command((sys.executable, "-c", code), {}, tmp_path)
    with nothing_left(), start(command, log.output, clock=lambda: 0) as child:
        ended = child.supervise(NEVER, clock=lambda: 0, may_go_on=lambda: not log.lines)
    assert (ended.stop, ended.exit_code, ended.signal) == (Stop.CANCELLED, 7, None)


def test_the_grace_of_a_cancelled_child_ends_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left behind its end is for the verdict."""
    monkeypatch.setattr("handler.process.child._SLICE_S", 0.01)
    log = Log()
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    command = Command((sys.executable, "-c", code), {}, tmp_path)
    now_ms = itertools.count()

    with nothing_left(), start(command, log.output, clock=lambda: next(now_ms)) as child:
        assert until(lambda: bool(log.lines))
        shutdown = Shutdown(2**60, 100)
        ended = child.supervise(shutdown, clock=lambda: next(now_ms) * 10, may_go_on=lambda: False)
    assert (ended.stop, ended.signal) == (Stop.CANCELLED, signal.SIGKILL)
    assert ended.ended_ms < _CANCEL_GRACE_MS


@pytest.mark.parametrize("stuck", [True, False])
def test_a_jvm_whose_output_is_not_read_to_its_end_waits_for_no_other_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stuck: bool
) -> None:
    """The thread that still reads it would take the next job's output."""
    if stuck:
        monkeypatch.setattr("handler.process.child._END_TIMEOUT_S", 0.2)
    is_free = threading.Event()

    def log(_: str) -> None:
        is_free.wait(BUSY_S if stuck else 0)

    output = JobLog(Redactor(), log=log, metric=print)
    with start(Command((sys.executable, "-c", _RESTS), {}, tmp_path), output, clock=epoch_ms) as child:
        ended = child.supervise(NEVER, clock=epoch_ms)
        is_free.set()
    child.jvm.end()
    assert (ended.exit_code, ended.rests) == (0, not stuck)


def test_a_job_that_wants_another_attempt_leaves_its_jvm_with_its_exit_code(tmp_path: Path) -> None:
    """The code is the script's own."""
    command = Command((sys.executable, "-c", _RESTS.replace("d 0", f"d {EXIT_TRY_AGAIN}")), {}, tmp_path)
    with start(command, Log().output, clock=epoch_ms) as child:
        ended = child.supervise(NEVER, clock=epoch_ms)
    child.jvm.end()
    assert (ended.exit_code, ended.own_exit, ended.rests) == (EXIT_TRY_AGAIN, EXIT_TRY_AGAIN, True)


def test_a_ready_line_after_the_signal_is_no_end_of_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script has answered the signal by exit(0), perhaps in the middle of its work: this is no success."""
    monkeypatch.setattr("handler.process.child._END_TIMEOUT_S", 0.2)
    code = """
import os, signal, socket
channel = socket.socket(fileno=0)
signal.signal(signal.SIGTERM, lambda *_: channel.sendall(b"%d 0\\n" % os.getpid()))
channel.recv(1)
print("up", flush=True)
while True:
    signal.pause()
"""
    with nothing_left():
        ended = run(tmp_path, code, Log(), Shutdown(1, 60_000))
    assert (ended.stop, ended.own_exit, ended.rests) == (Stop.TERMINATED, None, False)


def test_a_child_that_may_run_no_more_is_ended_at_once(tmp_path: Path) -> None:
    """Its turn may belong to another job by now; the deadline is far away."""
    log = Log()
    command = Command((sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"), {}, tmp_path)
    with nothing_left(), start(command, log.output, clock=epoch_ms) as child:
        ended = child.supervise(NEVER, clock=epoch_ms, may_go_on=lambda: not log.lines)
    assert (ended.stop, ended.signal) == (Stop.CANCELLED, signal.SIGTERM)


def test_no_search_for_secrets_outlives_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread ends although its search would not: what it has not searched is withheld, and the lines behind that
    are read.
    """
    monkeypatch.setattr("handler.process.child._END_TIMEOUT_S", 1.0)

    def endless(_: KnownForms, text: str, __: str, look: Callable[[], None], **___: object) -> str:
        while text == "slow":
            look()
        return text

    monkeypatch.setattr(KnownForms, "masked", endless)
    lines: list[str] = []
    effort = Effort(1, lambda: 0)
    output = JobLog(Redactor(), log=lines.append, metric=lines.append, effort=effort)
    command = Command((sys.executable, "-c", "input(); print('first\\nslow\\nlast')"), {}, tmp_path)
    with start(command, output, clock=epoch_ms) as child:
        assert until(lambda: lines == ["first"])
        child.supervise(NEVER, clock=epoch_ms)
    assert not child.pump.is_alive()
    assert (lines, output.lines_dropped, output.is_whole) == (["first", WITHHELD, WITHHELD], 2, True)
