"""`soal runs ui` says what is missing before it starts a history server, and why one does not start."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handler.runs.event_logs import prefix_of
from soal.console.problem import Problem
from soal.home import Home
from soal.runs import history
from soal.runs.history import HistoryServer
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'[{"id": "local-1"}]')

(port,) = (word.partition("=")[2] for word in sys.argv if word.startswith("-Dspark.history.ui.port="))
HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""
"""A history server that shows one application, whatever logs there are."""
START = b'{"Event":"SparkListenerApplicationStart","App ID":"local-1"}\n'


@pytest.fixture
def pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make a PySpark of a version."""

    def of(version: str) -> Path:
        home = tmp_path / "pyspark"
        home.joinpath("jars").mkdir(parents=True)
        home.joinpath("jars", f"spark-core_2.13-{version}.jar").touch()
        monkeypatch.setattr(history, "find_pyspark", lambda: home)
        return home

    return of


def test_a_python_without_spark_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wheel brings no Spark: it is that of the place where it runs."""
    monkeypatch.setattr(history, "find_pyspark", lambda: None)
    with pytest.raises(Problem, match="which this Python does not have") as caught:
        HistoryServer.find(Home(tmp_path))
    assert "-m pip install 'pyspark==4.1.*'" in caught.value.todo


def test_another_release_of_spark_is_refused(pyspark: Callable[[str], Path], tmp_path: Path) -> None:
    """Older history servers make objects of any class that an event names."""
    pyspark("3.5.6")
    with pytest.raises(Problem, match=r"is Spark 3\.5\.6") as caught:
        HistoryServer.find(Home(tmp_path))
    assert "pyspark==4.1.*" in caught.value.todo


def test_a_machine_without_java_is_told_so(
    pyspark: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked for where jobs of this machine look."""
    pyspark("4.1.4")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Problem, match="no java is on the path") as caught:
        HistoryServer.find(Home(tmp_path), environ={})
    assert caught.value.todo == "install Java 17, or set JAVA_HOME to one"


def test_a_run_without_event_logs_is_told_how_to_keep_them(tmp_path: Path) -> None:
    """No server starts; an object that no handler has written is no event log."""
    store = MemoryObjectStore()
    store.put(f"{prefix_of('nightly')}other", START)
    store.put(f"{prefix_of('nightly')}000001-{'b' * 300}-1", START)
    store.put(f"{prefix_of('nightly')}000001-run-{'1' * 300}", START)
    with (
        pytest.raises(Problem, match="no event log of a run 'nightly'") as caught,
        HistoryServer(Path("java"), tmp_path).on(store, "nightly"),
    ):
        pass
    assert "event_logs=on" in caught.value.todo


def test_a_server_that_does_not_start_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'port taken'\nexit 1\n")
    java.chmod(0o700)
    store = MemoryObjectStore()
    store.put(f"{prefix_of('nightly')}000001-run-1-1", START)
    with (
        pytest.raises(Problem, match=r"history server has ended\nport taken"),
        HistoryServer(java, tmp_path).on(store, "nightly"),
    ):
        pass
    assert list(tmp_path.iterdir()) == [java]


def test_a_log_that_the_server_cannot_read_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told by its place; the server never says that it has given up."""
    monkeypatch.setattr(history, "_REST_TIMEOUT_S", 0.1)
    java = tmp_path / "java"
    java.write_text(f"#!{sys.executable}\n{SERVER}")
    java.chmod(0o700)
    store = MemoryObjectStore()
    store.put(f"{prefix_of('nightly')}000001-run-1-1", START.replace(b"local-1", b"local-0") + b"{broken\n")
    store.put(f"{prefix_of('nightly')}000002-run-2-1", START)
    with HistoryServer(java, tmp_path).on(store, "nightly") as served:
        assert [(one.attempt, one.application) for one in served.applications] == [(2, "local-1")]
        assert served.unread == [store.uri(f"{prefix_of('nightly')}000001-run-1-1")]


@pytest.mark.parametrize("start", [b'{"Event":"SparkListenerApplicationStart"', b'["SparkListenerApplicationStart"]'])
def test_a_log_that_a_job_has_made_up_shows_no_application(tmp_path: Path, start: bytes) -> None:
    """A script may put any file beside Spark's own logs."""
    tmp_path.joinpath("a").write_bytes(start + b"\n")
    tmp_path.joinpath("b").write_bytes(START.replace(b"local-1", b"../x"))
    tmp_path.joinpath("c").write_bytes(START)
    assert list(history.applications_of(tmp_path)) == [(tmp_path / "c", "local-1")]


def test_a_line_that_the_handler_does_not_keep_is_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may put logs there may put a line that fills this machine's memory."""
    monkeypatch.setattr(history, "EVENT_MAX", 1000)
    tmp_path.joinpath("a").write_bytes(START.rstrip(b"\n}") + b', "x": "' + b"x" * 1000 + b'"}\n')
    tmp_path.joinpath("b").write_bytes(START)
    assert list(history.applications_of(tmp_path)) == [(tmp_path / "b", "local-1")]
