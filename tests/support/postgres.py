"""A local PostgreSQL server, from Debian's package, for Iceberg's JDBC catalog; its data are deleted at its end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final, Self

__all__ = ["USER", "Postgres", "find_postgres"]

USER: Final = "soal"
_NOBODY: Final = 65534
_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 20.0


def find_postgres() -> Path | None:
    """Return the folder of the newest server programs; Debian keeps them off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else (Path(on_path).parent if on_path else None)


class Postgres:
    """A context manager: `with Postgres("secret") as server: server.address` is `127.0.0.1:PORT/postgres`.

    Its user is `soal`, with the given password. It stops when the block ends.
    """

    def __init__(self, password: str) -> None:
        self._password = password
        self._folder = Path()
        self._server: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> Self:
        programs = find_postgres()
        if programs is None:
            raise FileNotFoundError("PostgreSQL's server is not installed (Debian: apt install postgresql)")
        self._folder = Path(tempfile.mkdtemp(prefix="soal-postgres-"))
        # The server refuses to run as root, and its folder must be its user's own.
        user = _NOBODY if os.getuid() == 0 else None
        if user is not None:
            os.chown(self._folder, user, user)
        secret = self._folder / "secret"
        secret.write_text(self._password, encoding="utf-8")
        secret.chmod(0o644)
        data = self._folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, user=user, cwd=self._folder,
        )  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
        with (self._folder / "log").open("wb") as log:
            self._server = subprocess.Popen(
                [programs / "postgres", "-D", data, *(f"--{key}={value}" for key, value in settings.items())],
                stdout=log, stderr=log, user=user, cwd=self._folder,
            )  # fmt: skip
        self.address = f"127.0.0.1:{port}/postgres"
        self._wait(programs / "pg_isready", port)
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)  # without waiting for its clients to disconnect
            self._server.wait(_END_TIMEOUT_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self, is_ready: Path, port: int) -> None:
        until = time.monotonic() + _START_TIMEOUT_S
        while subprocess.run([is_ready, "-q", "-h", "127.0.0.1", "-p", str(port)], check=False).returncode != 0:
            if time.monotonic() > until or self._server is None or self._server.poll() is not None:
                log = (self._folder / "log").read_text(errors="replace")
                self.__exit__()
                raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}")
            time.sleep(0.1)
