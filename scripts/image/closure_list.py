"""Rewrite image/archive/closures.txt after a change of the jars or of the training: `scripts/lock closures`.

`python -m scripts.image.closure_list [SOAL_HOME]` trains without the jar of lambda expressions, reads from Java's log
for which classes Java generated lambda classes, and trains again with a jar for them.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.spark.installation import default_home
from scripts.image.closures import LIST, TrainingError
from scripts.image.training import train

if TYPE_CHECKING:
    from collections.abc import Iterable

_MADE: Final = re.compile(r"(\S+)\$\$Lambda\$\d+/\S+ source: \1$")
_HEAD: Final = """\
# Classes whose lambda expressions the training of the class-data archive uses, and Java would make at each start.
# Made by scripts/lock closures; a name that no jar has any more is passed over.
"""


def hosts_of(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the classes whose lambda expressions Java turned into classes, sorted, from its class loading log."""
    matches = (_MADE.search(line.rstrip("\n")) for line in lines)
    return tuple(sorted({match[1] for match in matches if match is not None}))


def main(home: Path) -> int:
    """Train without the jar, write the list, and train with it; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="soal-closures-") as folder:
        log, no_names = Path(folder, "classes.log"), Path(folder, "nothing.txt")
        no_names.touch()
        try:
            train(home, names=no_names, log=log)
            with log.open(encoding="utf-8", errors="replace") as lines:
                hosts = hosts_of(lines)
            LIST.write_text(_HEAD + "".join(f"{host}\n" for host in hosts), encoding="utf-8")
            train(home)
        except TrainingError as error:
            print(f"closures: failed: {error}", file=sys.stderr)
            return 1
    print(f"closures: {len(hosts)} classes in {LIST}; review the difference before you commit it")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if sys.argv[1:] else default_home()))
