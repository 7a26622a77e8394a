"""The program of a MicroVM for CRIU: as `python -m handler.microvm`, but it knows processes by their ids alone.

CRIU starts the processes of a copy anew, under the same ids and with another start time, by which the handler would
take them for strangers. In a copy of a machine's memory the start times stay.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from handler.microvm.__main__ import main
from handler.process import tree

__all__: list[str] = []

_row_of: Final = tree._row


def _without_start_time(pid: int) -> tree._Row | None:
    row = _row_of(pid)
    return None if row is None else dataclasses.replace(row, process=tree.Process(pid, 0))


if __name__ == "__main__":
    tree._row = _without_start_time
    main()
