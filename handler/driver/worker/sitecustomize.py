"""Set the job's variables in Python workers; Python imports a module of this name when it starts.

The JVM starts the workers and has none of the variables. The driver sends them through a socket: in the initial
environment of a process (/proc/PID/environ), any code that can be given a path could read them.
"""

import os
import sys


def _take_variables(place: str) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        folder, _, name = place.rpartition("/")
        handle = os.open(folder, os.O_PATH)
        connection.connect(f"/proc/self/fd/{handle}/{name}")  # the name of a socket has at most 107 bytes
        os.close(handle)
        with connection.makefile("rb") as stream:
            variables = os.fsdecode(stream.read())
    for assignment in filter(None, variables.split("\0")):
        name, _, value = assignment.partition("=")
        os.environ[name] = value


def _import_another_one() -> None:
    """Import the next `sitecustomize` on the path, which this module hides."""
    folder = os.path.dirname(__file__)  # noqa: PTH120 - importing pathlib would slow each process down
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    module = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = module


if place := os.environ.pop("SOAL_VARIABLES", None):
    _take_variables(place)
_import_another_one()
