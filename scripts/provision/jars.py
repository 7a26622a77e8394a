"""The jars besides PySpark's. Each list is a folder with a pom.xml, which Maven resolves, and a jars.sha256, which
checks each file; the folder of `.soal` with the jars has the list's name.

jars.sha256 has the format of sha256sum: `<64 hex digits>  <file name>` on each line.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.spark.classpath import LITERAL
from scripts.provision.steps import Found, say
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scripts.provision.java import Maven
    from scripts.provision.place import Place

_LINE: Final = re.compile(r"(?P<sum>[0-9a-f]{64})  (?P<name>[^/\s]+)")


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a folder and a list; `wrong` are files with other content."""

    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.wrong or self.extra)


def read_sums(path: Path) -> dict[str, str]:
    """Read a list as file name -> SHA-256 in hex. Raises `Failure` for a malformed line or a duplicate name."""
    sums: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in sums:
            fault = "is not '<sha256>  <file name>'" if match is None else f"names {match['name']} again"
            raise Failure(f"{path}, line {number} {fault}", todo="restore the file with git, or run scripts/lock")
        sums[match["name"]] = match["sum"]
    return sums


def write_sums(path: Path, folder: Path) -> int:
    """Write the list of all files in `folder`; return their number."""
    files = sorted(folder.iterdir())
    path.write_text("".join(f"{sha256_of(file)}  {file.name}\n" for file in files), encoding="utf-8")
    return len(files)


def compare(folder: Path, sums: Mapping[str, str]) -> Difference:
    """Read every file of `folder` and return how the folder differs from `sums`."""
    present = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {}
    return Difference(
        missing=tuple(sorted(sums.keys() - present.keys())),
        wrong=tuple(sorted(name for name in sums.keys() & present.keys() if sha256_of(present[name]) != sums[name])),
        extra=tuple(sorted(present.keys() - sums.keys())),
    )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


LOG_STORE_JAR: Final = "soal-logstore.jar"
OWN_JARS: Final = (LOG_STORE_JAR, LITERAL)
"""The jars that another step makes (scripts/provision/logstore.py)."""
LISTS: Final = {
    "jars": "image/jars",
    "full-jars": "image/full",
    "derived": "image/derived",
    "local-jars": "scripts/emulator/jars",
    "rest-jars": "scripts/emulator/rest",
}
"""The lists' folders: jars of the image, of its variant full, of the example of a derived image, and of this machine
only. Set-up fetches `jars`, `local-jars` and `rest-jars`; the others are fetched on demand.
"""


def ensure_jars(place: Place, maven: Callable[[], Maven], name: str = "jars") -> Found:
    """Make `.soal/NAME` contain exactly the listed jars (and our own, which another step makes).

    It hashes every jar at every run, 64 MB in about 0.2 s, and so notices stale or damaged jars.
    """
    source, target = place.root / LISTS[name], place.home / name
    sums = read_sums(source / "jars.sha256")
    difference = compare(target, sums)
    stale = [jar for jar in difference.extra if jar not in OWN_JARS]
    for jar in stale:
        (target / jar).unlink()
    for jar in difference.wrong:
        say(f"{target / jar} is not the listed one: removed it, will fetch it again")
        (target / jar).unlink()
    gaps = {jar: sums[jar] for jar in (*difference.missing, *difference.wrong)}
    if gaps:
        say(f"fetching {len(gaps)} {name}")
        with place.scratch() as scratch:
            maven().copy_closure(source / "pom.xml", scratch)
            admit(scratch, target, gaps)
    did = [f"{len(gaps)} fetched"] * bool(gaps) + [f"{len(stale)} stale removed: {', '.join(stale)}"] * bool(stale)
    return Found(", ".join([f"{len(sums)} {name}", *did]), changed=bool(did))


def admit(source: Path, target: Path, sums: Mapping[str, str]) -> None:
    """Move the files of `sums` (name -> SHA-256) from `source` to `target` if all checksums match.

    Raises `Failure` for a missing file or a wrong checksum; it deletes a wrong file, and moves none.
    """
    difference = compare(source, sums)
    if difference.wrong:
        lines = [f"  {name}: expected {sums[name]}, got {sha256_of(source / name)}" for name in difference.wrong]
        for name in difference.wrong:
            (source / name).unlink()
        raise Failure(
            "\n".join(["downloaded jars are not the pinned ones; they were deleted", *lines]),
            todo="delete them from Maven's local repository too and try again; "
            "if the sums differ once more, do not use them: ask who changed the list, or which server Maven uses",
        )
    if difference.missing:
        raise Failure(
            f"pom.xml does not resolve to what jars.sha256 lists: {', '.join(difference.missing)}",
            todo=f"after a change of the pom run: scripts/lock {target.name}",
        )
    target.mkdir(parents=True, exist_ok=True)
    for name in sums:
        (source / name).replace(target / name)
