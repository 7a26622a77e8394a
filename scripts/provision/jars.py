"""The jars beside PySpark's. Each list of them is a folder with a pom.xml, which Maven resolves, and a jars.sha256, by
which each file is checked; the folder of `.soal` that holds them is called like the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.spark.classpath import LITERAL
from scripts.provision.checksums import compare, read_sums, sha256_of
from scripts.provision.report import Found, SetupError, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scripts.provision.maven import Maven
    from scripts.provision.place import Place

__all__ = ["LISTS", "LOG_STORE_JAR", "OWN_JARS", "admit", "ensure_jars"]

LOG_STORE_JAR: Final = "soal-logstore.jar"
OWN_JARS: Final = (LOG_STORE_JAR, LITERAL)
"""Those that another step makes (scripts/provision/logstore.py)."""
LISTS: Final = {
    "jars": "image/jars",
    "full-jars": "image/full",
    "local-jars": "scripts/emulator/jars",
    "rest-jars": "scripts/emulator/rest",
    "s3proxy-jars": "scripts/emulator/s3proxy",
}
"""Their folders: the image's jars, those that its variant full adds, and those that only this machine needs. Set-up
fetches the image's, `local-jars` and `rest-jars`; who needs another one fetches it.
"""


def ensure_jars(place: Place, maven: Callable[[], Maven], name: str = "jars") -> Found:
    """Make `.soal/NAME` hold exactly the listed jars (and our own, which another step makes).

    Every jar is read at every run: 64 MB in about 0.2 s, and nothing can be stale or damaged without being noticed.
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
    wanted = {jar: sums[jar] for jar in (*difference.missing, *difference.wrong)}
    if wanted:
        say(f"fetching {len(wanted)} {name}")
        with place.scratch() as scratch:
            maven().copy_closure(source / "pom.xml", scratch)
            admit(scratch, target, wanted)
    did = [f"{len(wanted)} fetched"] * bool(wanted) + [f"{len(stale)} stale removed: {', '.join(stale)}"] * bool(stale)
    return Found(", ".join([f"{len(sums)} {name}", *did]), changed=bool(did))


def admit(source: Path, target: Path, wanted: Mapping[str, str]) -> None:
    """Move the `wanted` files (name -> SHA-256) from `source` to `target`, if each of them has its sum.

    Raises `SetupError` for a missing file or a wrong sum; the file is deleted then, and nothing is moved.
    """
    difference = compare(source, wanted)
    if difference.wrong:
        lines = [f"  {name}: expected {wanted[name]}, got {sha256_of(source / name)}" for name in difference.wrong]
        for name in difference.wrong:
            (source / name).unlink()
        raise SetupError(
            "\n".join(["downloaded jars are not the pinned ones; they were deleted", *lines]),
            todo="delete them from Maven's local repository too and try again; "
            "if the sums differ once more, do not use them: ask who changed the list or what answers for Maven",
        )
    if difference.missing:
        raise SetupError(
            f"pom.xml does not resolve to what jars.sha256 lists: {', '.join(difference.missing)}",
            todo=f"after a change of the pom run: scripts/lock {target.name}",
        )
    target.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        (source / name).replace(target / name)
