"""The entry of the command line: `soal`, `python -m soal`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from soal.source_paths import FUNCTION


def main() -> None:
    """Run the command line, or report that the extra `cli` is not installed."""
    if find_spec("typer") is None:
        sys.exit("soal: the command needs packages that SafeWriter does not: pip install 'soal[cli]'")
    # An installed package contains the function's code, so that its module names cannot clash with other packages.
    if str(FUNCTION) not in sys.path:
        sys.path.insert(0, str(FUNCTION))
    from soal.app import main as run

    run()


if __name__ == "__main__":
    main()
