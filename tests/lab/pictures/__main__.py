"""`python -m tests.lab.pictures`: run real jobs, check the claims about them, and draw docs/pictures from the facts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.demonstration.stage import Claims
from scripts.provision.place import ROOT
from soal.console.problem import EXIT_FAILED, EXIT_OK
from soal.console.screen import Screen
from tests.lab.pictures.claims import claims_of
from tests.lab.pictures.facts import Facts, read_facts, write_facts
from tests.lab.pictures.kill_picture import kill_picture
from tests.lab.pictures.plot import svg
from tests.lab.pictures.write_picture import write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FACTS", "PICTURES", "main", "pictures_of"]

PICTURES: Final = ROOT / "docs" / "pictures"
FACTS: Final = "runs.json"


def main() -> int:
    """Write the facts and both pictures and return 0, if every claim in them is true; else write nothing."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.pictures", description=__doc__)
    parser.add_argument("--out", type=Path, default=PICTURES, metavar="FOLDER", help="where to write (docs/pictures)")
    parser.add_argument("--redraw", action="store_true", help="run nothing; draw from the existing facts")
    asked = parser.parse_args()
    folder: Path = asked.out
    console = Screen(stderr=True)
    if asked.redraw:
        facts = read_facts(folder / FACTS)
    else:
        from tests.lab.pictures.collect import collect

        facts = collect(console)
    claims = Claims(console)
    for claim in claims_of(facts):
        claims.check(claim.text, holds=claim.holds)
    if not claims.all_hold:
        return EXIT_FAILED
    folder.mkdir(parents=True, exist_ok=True)
    write_facts(facts, folder / FACTS)
    for name, picture in pictures_of(facts).items():
        (folder / name).write_text(svg(picture), encoding="utf-8")
        print(folder / name)
    return EXIT_OK


def pictures_of(facts: Facts) -> dict[str, Figure]:
    """Return the pictures by file name."""
    return {"write.svg": write_picture(facts), "kill.svg": kill_picture(facts)}


if __name__ == "__main__":
    sys.exit(main())
