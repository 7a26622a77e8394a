"""The process guardian passes on a command's exit code or signal, and kills the command once its caller is gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts.emulator.spark import ROOT


def guarded(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the guardian with pipes for its input and output."""
    command = [sys.executable, "-m", "scripts.guardian", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def close_when_up(guardian: subprocess.Popen[bytes]) -> None:
    """Close the guardian's input, as its caller's end does, once the command has printed `up`."""
    assert guardian.stdin is not None
    assert guardian.stdout is not None
    assert guardian.stdout.readline() == b"up\n"
    guardian.stdin.close()


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_end_of_the_command_is_passed_on(script: str, code: int) -> None:
    """The guardian returns the command's exit code, or 128 plus the number of its signal."""
    with subprocess.Popen(
        [sys.executable, "-m", "scripts.guardian", "sh", "-c", script], cwd=ROOT, stdin=subprocess.PIPE
    ) as guardian:
        assert guardian.wait(30) == code


def test_the_end_of_input_ends_the_command() -> None:
    """When the caller closes the input, the command is killed, and the exit code is 0."""
    with guarded("sh", "-c", "echo up; sleep 300") as guardian:
        close_when_up(guardian)
        assert guardian.wait(30) == 0


def test_no_process_of_the_command_sees_another_one_end() -> None:
    """All are stopped before the first is killed: none has time to complain of the loss of its peer."""
    reader = "echo up; read line; echo alone"
    code = f"""
import subprocess
idle = [subprocess.Popen(["sleep", "300"]) for _ in range(100)]
subprocess.Popen(["sh", "-c", {reader!r}], stdin=subprocess.PIPE).wait()
"""
    with guarded(sys.executable, "-c", code) as guardian:
        close_when_up(guardian)
        assert guardian.stdout is not None
        assert guardian.stdout.read() == b""
        assert guardian.wait(30) == 0


def test_the_command_knows_the_counter_of_its_limit() -> None:
    """The guardian keeps the limit, and gives the command the place of the count."""
    eat = "held = b'x' * (400 << 20); input()"
    code = f"""
import os, subprocess, sys
eater = subprocess.run([sys.executable, "-c", {eat!r}], stdin=subprocess.PIPE)
print(eater.returncode, open(os.environ["SOAL_MEMORY_KILLS"]).read().strip())
"""
    with guarded("--memory-mb", "300", sys.executable, "-c", code) as guardian:
        assert guardian.stdout is not None
        assert guardian.stdout.readline() == b"-9 oom_kill 1\n"
        assert guardian.wait(30) == 0
