"""Three ZooKeeper servers on the loopback that elect a leader, and can be killed one by one."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import pytest

from tests.support.waiting import until
from tests.support.zookeeper_server import ZooKeeper

__all__ = ["Ensemble", "debian"]

_SIZE: Final = 3
_DEBIAN: Final = Path("/usr/share/java/zookeeper.jar")
"""The classpath of Debian's package zookeeper: the jar's manifest names the others."""


def debian() -> str:
    """Return the classpath of Debian's ZooKeeper; skip the test if it is not installed."""
    if not _DEBIAN.is_file():
        pytest.skip("ZooKeeper is not installed (Debian: apt install zookeeper)")
    return str(_DEBIAN)


class Ensemble:
    """A context manager: `with Ensemble(folder) as ensemble: ensemble.hosts` names all servers."""

    def __init__(self, folder: Path, *, classpath: str | None = None) -> None:
        ports = _free_ports(2 * _SIZE)
        named = {f"server.{one + 1}": f"127.0.0.1:{ports[2 * one]}:{ports[2 * one + 1]}" for one in range(_SIZE)}
        settings = {"initLimit": 100, "syncLimit": 20, **named}
        self.servers: list[ZooKeeper] = []
        for one in range(1, _SIZE + 1):
            home = folder / str(one)
            (home / "data").mkdir(parents=True)
            (home / "data" / "myid").write_text(f"{one}\n")
            self.servers.append(ZooKeeper(home, classpath=classpath, ensemble=settings))

    @property
    def hosts(self) -> str:
        return ",".join(server.hosts for server in self.servers)

    def leader(self) -> ZooKeeper:
        """Wait for the leader."""
        found: list[ZooKeeper] = []

        def is_elected() -> bool:
            found[:] = [server for server in self.servers if server.mode() == "leader"]
            return bool(found)

        assert until(is_elected)
        return found[0]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for server in self.servers:
                stack.callback(server.kill)
                server.launch()
            for server in self.servers:
                server.wait()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.kill()


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody uses now, all held until the last one is known: so none is there twice."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in held]
