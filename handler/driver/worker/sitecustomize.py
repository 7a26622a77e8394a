"""Give the Python processes of functions the job's variables; Python imports a module of this name when it starts.

Java starts these processes, and has none of the variables. They come from the driver, through a socket: in the
environment with which a process is started anybody could read them who can name a path (/proc/PID/environ).
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
    """Import the module that stands behind this one on the path, as Python would have done."""
    folder = os.path.dirname(__file__)  # noqa: PTH120 - pathlib would cost each process its time
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    module = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = module


if place := os.environ.pop("SOAL_VARIABLES", None):
    _take_variables(place)
_import_another_one()
