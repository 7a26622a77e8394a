"""Spark's own history server on the event logs of one run: `soal runs ui`.

The server belongs to the PySpark of this Python. It listens on the loopback address only, reads copies in a folder of
its own, and gets no variable of the caller's but `PATH`: so it has no credentials.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from handler.input_errors import InputError
from handler.process.tree import die_with_parent
from handler.runs.event_logs import EVENT_MAX, UNFINISHED, prefix_of
from handler.spark.installation import find_java, find_pyspark
from handler.spark.jvm_options import MODULE_OPTIONS
from safewriter.errors import UnsupportedError
from safewriter.parsing import parsed
from safewriter.tables.release import check_spark
from soal.console.problem import Failure, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from safewriter.objects import ListedObject, ObjectStore
    from soal.home import Home

_LOOPBACK: Final = "127.0.0.1"
_API: Final = "/api/v1/"
_SERVER: Final = "org.apache.spark.deploy.history.HistoryServer"
_START_TIMEOUT_S: Final = 60.0
_REST_TIMEOUT_S: Final = 20.0
"""How long the server may read on after each log that it shows: one that it cannot read is never shown."""
_END_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.2
_TAIL_LINES: Final = 5
_BYTES_MAX: Final = 1 << 30
_INSTALL: Final = f"{sys.executable} -m pip install 'pyspark==4.1.*'; in a clone call .venv/bin/soal, which has it"
_APPLICATION: Final = re.compile(r"[\w.-]+")
_CORE: Final = re.compile(r"spark-core_[\d.]+-(\d.*)\.jar")
# Of the handler's own form, which is a file's name: whoever may put objects there chooses other keys.
_NAME: Final = re.compile(
    rf"/[0-9a-f]{{32}}-(?P<attempt>[0-9]{{6}})-(?P<run_id>[A-Za-z0-9-]{{1,64}})-[0-9]{{1,3}}(?:{re.escape(UNFINISHED)})?\Z"
)


@dataclass(frozen=True, slots=True)
class Application:
    """A Spark application of a run's attempt, as the history server shows it. `is_whole`: Spark has ended it itself.
    `url` is its page, `api` its address in Spark's REST API.
    """

    attempt: int
    run_id: str
    application: str
    is_whole: bool
    url: str
    api: str


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: the applications that it shows, the oldest first; the logs that it does not show, as URIs; and
    its process.
    """

    applications: list[Application]
    unread: list[str]
    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class HistoryServer:
    """How to start the history server: its Java, the folder of its PySpark, and the port (0: any free one)."""

    java: Path
    pyspark: Path
    port: int = 0

    @classmethod
    def find(cls, home: Home, port: int = 0, environ: Mapping[str, str] = os.environ) -> HistoryServer:
        """Find Java and PySpark. Raises `Problem` if one is missing, or is not of the release that jobs have."""
        pyspark = find_pyspark()
        cores = [] if pyspark is None else [_CORE.fullmatch(jar.name) for jar in (pyspark / "jars").glob("*.jar")]
        versions = [core[1] for core in cores if core is not None]
        if pyspark is None or not versions:
            raise Problem(
                "Spark's history server is part of PySpark, which this Python does not have",
                todo=_INSTALL,
            )
        java_home = environ.get("JAVA_HOME")
        try:
            check_spark(versions[0])
            return cls(find_java(home.path, Path(java_home) if java_home else None), pyspark, port)
        except UnsupportedError as error:
            raise Problem(
                f"{pyspark} is Spark {versions[0]}, and the jobs' event logs are of another release",
                todo=_INSTALL,
            ) from error
        except InputError as error:
            raise Problem(str(error), todo="install Java 17, or set JAVA_HOME to one") from error

    @contextmanager
    def on(self, store: ObjectStore, run_key: str) -> Iterator[Served]:
        """Serve the event logs of a run. The server's process has ended when the block has.

        Raises `Problem` if the run has no event log, or the server does not start or shows none of them.
        """
        listed = [log for log in store.list(prefix_of(run_key)) if _NAME.search(log.key)]
        if not listed:
            raise Failure(
                f"there is no event log of a run {run_key!r}: {store.uri(prefix_of(run_key))}*",
                todo="let the function keep them (context key event_logs=on, or SOAL_EVENT_LOGS=on), and run the job"
                " again; see the run keys with: soal runs list",
            )
        if (size := sum(log.size for log in listed)) > _BYTES_MAX:
            raise Problem(
                f"the run's event logs have {size:,} bytes, of which at most {_BYTES_MAX:,} are copied",
                todo="open a history server of your own on the folder of the logs",
            )
        with tempfile.TemporaryDirectory(prefix="soal-history-") as folder:
            logs = Path(folder, "logs")
            logs.mkdir()
            keys = {log.key.rpartition("/")[2]: log.key for log in listed}
            for log in listed:
                _copy(store, log, logs)
            with self._serving(logs, Path(folder)) as (server, port, shown):
                unread = [store.uri(keys[log.name]) for log, name in applications_of(logs) if name not in shown]
                yield Served(_applications(logs, shown, f"http://{_LOOPBACK}:{port}"), unread, server)

    @contextmanager
    def _serving(self, logs: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, frozenset[str]]]:
        port = self.port or _free_port()
        output = folder / "server.log"
        with output.open("wb") as log, _ended_by_sigterm():
            server = subprocess.Popen(
                self._command(logs, port),
                cwd=folder,
                env=self._environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this process only, which ends the server
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call
            )
            try:
                yield server, port, _shown(server, port, logs, output)
            finally:
                server.terminate()
                with suppress(subprocess.TimeoutExpired):
                    server.wait(_END_TIMEOUT_S)
                server.kill()
                server.wait()

    def _command(self, logs: Path, port: int) -> Sequence[str]:
        settings = {
            "spark.history.fs.logDirectory": logs.as_uri(),
            "spark.history.ui.port": str(port),
            "spark.port.maxRetries": "0",  # another port than the one that is printed would be nobody's
        }
        options = (f"-D{name}={value}" for name, value in settings.items())
        return (str(self.java), "-Xmx1g", *MODULE_OPTIONS, *options, "-cp", f"{self.pyspark / 'jars'}/*", _SERVER)

    def _environment(self, folder: Path) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "SPARK_HOME": str(self.pyspark),
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": _LOOPBACK,  # the address at which it listens; the default is every one
        }


def _copy(store: ObjectStore, log: ListedObject, folder: Path) -> None:
    blocks = store.stream(log.key)
    if blocks is None:
        return
    with Path(folder, log.key.rpartition("/")[2]).open("wb") as file:
        file.writelines(blocks)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end this process as an exception, so that the server and its folder are removed."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _shown(server: subprocess.Popen[bytes], port: int, logs: Path, output: Path) -> frozenset[str]:
    """Wait until the server has read the logs, and return the applications that it shows. Raises `Problem` with the
    last lines of its output if it shows none.
    """
    names = {application for _, application in applications_of(logs)}
    shown: frozenset[str] = frozenset()
    until = time.monotonic() + _START_TIMEOUT_S
    while server.poll() is None and time.monotonic() < until:
        with suppress(OSError, ValueError):
            found = frozenset(application["id"] for application in _asked(port, "applications"))
            if names <= found:
                return found
            if found - shown:
                shown, until = found, time.monotonic() + _REST_TIMEOUT_S
        time.sleep(_POLL_S)
    if shown and server.returncode is None:
        return shown
    lines = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_TAIL_LINES:]
    why = "has ended" if server.returncode is not None else f"shows no log after {_START_TIMEOUT_S:.0f} s"
    raise Failure(
        "\n".join([f"Spark's history server {why}", *lines]),
        todo="if the port is taken, leave --port out; the server needs Java 17 and a whole PySpark",
    )


def _asked(port: int, what: str) -> Any:  # noqa: ANN401 - any JSON value
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{_LOOPBACK}:{port}{_API}{what}", timeout=_END_TIMEOUT_S) as answer:
        return json.load(answer)


def _applications(logs: Path, shown: frozenset[str], address: str) -> list[Application]:
    return [
        Application(
            attempt=int(name["attempt"]),
            run_id=name["run_id"],
            application=application,
            is_whole=not log.name.endswith(UNFINISHED),
            url=f"{address}/history/{application}/jobs/",
            api=f"{address}{_API}applications/{application}",
        )
        for log, application in applications_of(logs)
        if application in shown and (name := _NAME.search(str(log))) is not None
    ]


def applications_of(logs: Path) -> Iterator[tuple[Path, str]]:
    """Yield each log, the oldest attempt first, and its application. A log that ends before Spark has named it shows
    none.
    """
    for log in sorted(logs.iterdir()):
        with log.open(encoding="utf-8", errors="replace") as file:
            # The handler keeps no longer event; whoever may write logs there may put a line of any length.
            for line in iter(lambda: file.readline(EVENT_MAX), ""):
                if '"SparkListenerApplicationStart"' in line:
                    # A job may write any file there.
                    with suppress(ValueError, KeyError, TypeError):
                        application = parsed(line)["App ID"]
                        if isinstance(application, str) and _APPLICATION.fullmatch(application):
                            yield log, application
                    break
