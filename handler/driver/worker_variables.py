"""Send the job's variables to Python workers through a socket in the sandbox (worker/sitecustomize.py)."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["serve"]


def serve(variables: Mapping[str, str], place: str) -> None:
    """Answer each connection with the variables as `NAME=VALUE`, a zero byte after each, until this process ends."""
    body = os.fsencode("".join(f"{name}={value}\0" for name, value in variables.items()))
    server = socket.socket(socket.AF_UNIX)
    folder, _, name = place.rpartition("/")
    handle = os.open(folder, os.O_PATH)
    server.bind(f"/proc/self/fd/{handle}/{name}")  # the name of a socket has at most 107 bytes
    os.close(handle)
    server.listen()

    def answer() -> None:
        while True:
            connection, _ = server.accept()
            with suppress(OSError), connection:  # the worker has ended
                connection.sendall(body)

    threading.Thread(target=answer, name="soal-variables", daemon=True).start()
