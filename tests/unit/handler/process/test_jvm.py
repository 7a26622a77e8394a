"""The handler talks to a JVM that runs job after job: ready line, reports, liveness, and output of each job."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from handler.process.jvm import Jvm, Output
from handler.spark.command import Command
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from pathlib import Path

RESTS = """
import os, socket, sys
channel = socket.socket(fileno=0)
while channel.recv(1):
    print("a job", flush=True)
    channel.sendall(b"%d 0\\n" % os.getpid())
"""


def machine(tmp_path: Path, code: str) -> Jvm:
    return Jvm.start(Command((sys.executable, "-c", code), {}, tmp_path))


def test_a_machine_is_asked_and_reports(tmp_path: Path) -> None:
    """This works repeatedly; between jobs the JVM is alive and no message is pending."""
    jvm = machine(tmp_path, RESTS)
    try:
        assert jvm.is_alive()
        for _ in range(2):
            jvm.ask()
            assert until(lambda: jvm.report() == 0)
            assert jvm.is_alive()
        assert {one.pid for one in jvm.processes} == {jvm.process.pid}
    finally:
        jvm.end()
    assert not jvm.is_alive()


def test_no_process_of_a_machine_makes_a_message_queue(tmp_path: Path) -> None:
    """A queue would outlive the job, and no list shows it."""
    code = """
import ctypes, os
queue = ctypes.CDLL("librt.so.1", use_errno=True).mq_open(b"/soal-left", os.O_CREAT | os.O_RDWR, 0o600, None)
print(os.strerror(ctypes.get_errno()) if queue < 0 else "made", flush=True)
"""
    jvm = machine(tmp_path, code)
    try:
        assert jvm.stdout.readline() == b"Too many open files\n"
    finally:
        jvm.end()


def test_a_machine_is_ready_once_it_says_so(tmp_path: Path) -> None:
    """It is asked for the ready line without a job, and knows its processes from then on."""
    answers = """
import os
word = os.read(0, 1)
os.write(0, b"%d 0\\n" % os.getpid() if word == b"?" else b"no")
os.read(0, 1)
"""
    jvm = machine(tmp_path, answers)
    try:
        assert jvm.gets_ready(BUSY_S)
        assert jvm.drivers is not None
        assert jvm.is_alive()
    finally:
        jvm.end()


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import os; os.read(0, 1); os.read(0, 1)"])
def test_a_machine_that_ends_or_says_nothing_is_not_ready(tmp_path: Path, code: str) -> None:
    """The wait ends after its timeout."""
    jvm = machine(tmp_path, code)
    assert not jvm.gets_ready(0.1)
    jvm.end()


def test_a_machine_that_has_ended_is_not_alive_and_reports_nothing(tmp_path: Path) -> None:
    """Asking it is no error: the process shows how it ended."""
    jvm = machine(tmp_path, "raise SystemExit(3)")
    assert jvm.process.wait() == 3
    jvm.ask()
    assert not jvm.is_alive()
    assert jvm.report() is None
    jvm.end()


@pytest.mark.parametrize("said", ["x", "", "-1 0", "99999999 0", "1", "1 x", "1 0 0"])
def test_a_report_that_names_no_process_is_none(tmp_path: Path, said: str) -> None:
    """Then the job has not ended well."""
    jvm = machine(tmp_path, f"import os; os.write(0, {said.encode()!r} + b'\\n'); os.read(0, 1); os.read(0, 1)")
    try:
        assert until(lambda: not jvm.is_alive())  # a message is pending
        assert jvm.report() is None
    finally:
        jvm.end()


def test_the_output_ends_with_the_job_and_not_before_it_is_read() -> None:
    """All output written until then is read, though the pipe stays open for the next job."""
    reading, writing = os.pipe()
    os.write(writing, b"first\n" * 1000)
    output = Output(reading)
    output.job_has_ended()
    assert io.BufferedReader(output).read() == b"first\n" * 1000
    os.write(writing, b"second\n")
    with Output(reading) as later:
        later.job_has_ended()
        assert io.BufferedReader(later).read() == b"second\n"
    os.close(reading)
    os.close(writing)


def test_output_between_two_jobs_is_of_neither() -> None:
    """It would appear in the second job's log, masked with the second job's secrets."""
    reading, writing = os.pipe()
    os.write(writing, b"late\n" * 1000)
    with Output(reading) as output:
        output.discard()
        os.write(writing, b"own\n")
        output.job_has_ended()
        assert io.BufferedReader(output).read() == b"own\n"
    os.close(reading)
    os.close(writing)


def test_a_machine_without_the_process_that_it_kept_is_not_alive(tmp_path: Path) -> None:
    """Its next job would have no Python."""
    keeps = (
        "import subprocess, sys; kept = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
    )
    jvm = machine(
        tmp_path, keeps + "import os, time; os.read(0, 1); os.write(0, b'%d 0\\n' % kept.pid); time.sleep(600)"
    )
    try:
        jvm.ask()
        assert until(lambda: jvm.report() == 0)
        assert jvm.is_alive()
        assert jvm.drivers is not None
        os.kill(jvm.drivers.pid, signal.SIGKILL)
        assert until(lambda: not jvm.is_alive())
    finally:
        jvm.end()


def test_the_output_ends_with_the_pipe() -> None:
    """The JVM has ended."""
    reading, writing = os.pipe()
    os.write(writing, b"last")
    os.close(writing)
    assert io.BufferedReader(Output(reading)).read() == b"last"
    os.close(reading)
