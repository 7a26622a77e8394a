"""Real children, plain Python: whatever they do, the answer is true and no process of them survives."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from handler.process.child import Shutdown, start
from handler.spark.command import Command
from safewriter.deadline import epoch_ms
from tests.integration.handler.children import NEVER, Log, nothing_left, run

if TYPE_CHECKING:
    from pathlib import Path


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
    """50 MB without a line end become one truncated line, and reading resumes after the line end."""
    log = Log()
    run(tmp_path, "import sys\nfor _ in range(50): sys.stdout.write('y' * 2**20)\nprint()\nprint('after')", log)
    assert len(log.lines) == 2
    assert log.lines[0].endswith("yy… (the line is longer)")
    assert len(log.lines[0]) < 262_144
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
    aws = {"CloudWatchMetrics": [{"Namespace": "mine", "Metrics": [{"Name": "Rows"}]}]}
    code = f"import json; print(json.dumps({{'_aws': {aws}, 'Rows': 5, 'note': 'n' * 20000}}))"
    run(tmp_path, code, log)
    assert log.lines == []
    assert ("n" * 20000) in log.metrics[0]


def test_the_environment_and_directory_are_the_command_s_own(tmp_path: Path) -> None:
    """The child inherits only what the command names."""
    log = Log()
    code = "import os; print(sorted(n for n in os.environ if n != 'LC_CTYPE')); print(os.getcwd())"
    run(tmp_path, code, log, GIVEN="1")
    assert log.lines == ["['GIVEN']", str(tmp_path)]


def test_stdin_stays_open_until_the_supervisor_is_gone(tmp_path: Path) -> None:
    """A child that waits on its stdin keeps waiting, until the shutdown sequence kills it."""
    log = Log()
    ended = run(tmp_path, "import sys; print('up'); sys.stdin.read(); print('end')", log, Shutdown(300, 60_000))
    assert log.lines == ["up"]
    assert ended.signal == signal.SIGTERM


def test_the_beat_goes_on_while_the_child_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`beat` is called repeatedly, on a thread of its own, and not after the child's end."""
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


def test_a_command_that_does_not_exist_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """The error is the operating system's."""
    command = Command(("/no/such/java",), {}, tmp_path)
    with nothing_left(), pytest.raises(FileNotFoundError), start(command, Log().output, clock=epoch_ms):
        raise AssertionError


def test_memory_of_the_whole_tree_is_seen(tmp_path: Path) -> None:
    """The peak includes the child's memory and the supervisor's own."""
    code = "import time; block = b'x' * 200 * 2**20; print('up'); time.sleep(600)"
    ended = run(tmp_path, code, Log(), Shutdown(1, 1))
    assert ended.peak_mb >= 200
