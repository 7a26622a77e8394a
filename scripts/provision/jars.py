"""The jars beside PySpark's: resolved by Maven from image/jars/pom.xml, each checked against image/jars/jars.sha256;
and those that only this machine needs, from scripts/emulator/jars and scripts/emulator/rest, in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scripts.provision.checksums import compare, read_sums, sha256_of
from scripts.provision.report import Found, SetupError, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scripts.provision.maven import Maven
    from scripts.provision.place import Place

__all__ = ["LOG_STORE_JAR", "admit", "ensure_jars", "ensure_local_jars", "ensure_rest_jars"]

LOG_STORE_JAR: Final = "soal-logstore.jar"


def ensure_jars(place: Place, maven: Callable[[], Maven]) -> Found:
    """Make `.soal/jars` hold exactly the listed jars (and the log store's, which another step makes).

    Every jar is read at every run: 64 MB in about 0.2 s, and nothing can be stale or damaged without being noticed.
    """
    return _ensure(place, maven, place.root / "image" / "jars", place.jars)


def ensure_local_jars(place: Place, maven: Callable[[], Maven]) -> Found:
    """Make `.soal/local-jars` hold exactly what scripts/emulator/jars lists."""
    return _ensure(place, maven, place.root / "scripts" / "emulator" / "jars", place.local_jars)


def ensure_rest_jars(place: Place, maven: Callable[[], Maven]) -> Found:
    """Make `.soal/rest-jars` hold exactly what scripts/emulator/rest lists."""
    return _ensure(place, maven, place.root / "scripts" / "emulator" / "rest", place.rest_jars)


def _ensure(place: Place, maven: Callable[[], Maven], source: Path, target: Path) -> Found:
    sums = read_sums(source / "jars.sha256")
    difference = compare(target, sums)
    stale = [name for name in difference.extra if name != LOG_STORE_JAR]
    for name in stale:
        (target / name).unlink()
    for name in difference.wrong:
        say(f"{target / name} is not the listed one: removed, to be fetched again")
        (target / name).unlink()
    wanted = {name: sums[name] for name in (*difference.missing, *difference.wrong)}
    if wanted:
        with place.scratch() as scratch:
            maven().copy_closure(source / "pom.xml", scratch)
            admit(scratch, target, wanted)
    did = [f"{len(wanted)} fetched"] * bool(wanted) + [f"{len(stale)} stale removed: {', '.join(stale)}"] * bool(stale)
    return Found(", ".join([f"{len(sums)} {target.name}", *did]), changed=bool(did))


def admit(source: Path, target: Path, wanted: Mapping[str, str]) -> None:
    """Move the `wanted` files (name -> SHA-256) from `source` to `target`, if each of them is what it should be.

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
            "if the sums differ once more, do not use them: ask who changed image/jars or what answers for Maven",
        )
    if difference.missing:
        raise SetupError(
            f"image/jars/pom.xml does not resolve to what jars.sha256 lists: {', '.join(difference.missing)}",
            todo="after a change of the pom run: scripts/lock jars",
        )
    target.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        (source / name).replace(target / name)
