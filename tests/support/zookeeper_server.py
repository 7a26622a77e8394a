"""A local ZooKeeper server in a Java process of its own: by default the one that PySpark brings along.

Its data are in a folder. It can be stopped and restarted on the same port and data, like a real one.
"""

from __future__ import annotations

import socket
import subprocess
import time
from typing import TYPE_CHECKING, Final, Self

from handler.spark.installation import find_pyspark
from scripts.emulator.java import java_program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_START_TIMEOUT_S: Final = 60.0
_TICK_MS: Final = 100
_JARS: Final = (
    "commons-cli-*.jar", "commons-io-*.jar", "log4j-*.jar", "metrics-core-*.jar", "netty-[bchrt]*.jar",
    "slf4j-api-*.jar", "snappy-java-*.jar", "zookeeper-*.jar",
)  # fmt: skip


class ZooKeeper:
    """A context manager: `with ZooKeeper(folder) as server: server.uri` is `zookeeper://127.0.0.1:PORT/locks`.

    Parameters
    ----------
    folder
        For its data and its log; an earlier server's data stay valid.
    session_min_s, session_max_s
        The limits between which a client may choose the timeout of its session.
    classpath
        Another server's.
    ensemble
        The settings that it shares with the other servers of its ensemble.
    """

    def __init__(
        self,
        folder: Path,
        *,
        session_min_s: float = 0.5,
        session_max_s: float = 60.0,
        classpath: str | None = None,
        ensemble: Mapping[str, object] | None = None,
    ) -> None:
        self._folder = folder
        self._limits_ms = (round(session_min_s * 1000), round(session_max_s * 1000))
        self._classpath = classpath
        self._ensemble = ensemble or {}
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def uri(self) -> str:
        """The URI of a backend of locks on it."""
        return f"zookeeper://{self.hosts}/locks"

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it. In an ensemble it serves once a majority of the servers runs."""
        main = "quorum.QuorumPeerMain" if self._ensemble else "ZooKeeperServerMain"
        with (self._folder / "zookeeper.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    java_program(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                    "-Dzookeeper.forceSync=no", "-cp", self._classpath or _of_pyspark(),
                    f"org.apache.zookeeper.server.{main}", self._configured(),
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder,
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until it accepts connections."""
        assert self._process is not None
        until = time.monotonic() + _START_TIMEOUT_S
        while not self.mode():
            if time.monotonic() > until or self._process.poll() is not None:
                self.kill()
                output = (self._folder / "zookeeper.log").read_text(errors="replace")
                raise RuntimeError(f"ZooKeeper did not start:\n{output[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it, as in a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _configured(self) -> Path:
        settings = {
            "dataDir": self._folder / "data",
            "clientPortAddress": "127.0.0.1",
            "clientPort": self.port,
            "tickTime": _TICK_MS,
            "minSessionTimeout": self._limits_ms[0],
            "maxSessionTimeout": self._limits_ms[1],
            "admin.enableServer": "false",
            "maxClientCnxns": 0,  # by default 60 from one address
            **self._ensemble,
        }
        path = self._folder / "zoo.cfg"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        return path

    def mode(self) -> str:
        """Return what it is: standalone, leader, follower; empty while it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                said = b"".join(iter(lambda: connection.recv(1024), b""))
        except OSError:
            return ""
        return next((line[6:].decode() for line in said.splitlines() if line.startswith(b"Mode: ")), "")


def _of_pyspark() -> str:
    spark_home = find_pyspark()
    if spark_home is None:
        raise FileNotFoundError("PySpark is not installed; run scripts/setup")
    return ":".join(str(jar) for pattern in _JARS for jar in sorted((spark_home / "jars").glob(pattern)))
