"""Tell the Python processes of functions the job's variables, by a socket in the sandbox (worker/sitecustomize.py)."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["serve"]


def serve(variables: Mapping[str, str], place: str) -> None:
    """Answer each connection with the variables, as JSON, until this process ends."""
    body = json.dumps(dict(variables)).encode()
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen()

    def answer() -> None:
        while True:
            connection, _ = server.accept()
            with suppress(OSError), connection:  # the process has ended
                connection.sendall(body)

    threading.Thread(target=answer, name="soal-variables", daemon=True).start()
