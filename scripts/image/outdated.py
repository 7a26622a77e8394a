"""What is pinned and not the newest, and what holds it back: Python packages and jars.

`python -m scripts.image.outdated`, by scripts/outdated. It asks uv and Maven, changes nothing, and fails for nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Stale", "main", "packages", "read_lock", "updates"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_LOCK: Final = _ROOT / "requirements" / "dev.txt"
_POM: Final = _ROOT / "image" / "jars" / "pom.xml"
_UV: Final = Path(sys.executable).with_name("uv")
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_UPDATE: Final = re.compile(r"(\S+:\S+) \.*\s+(\S+) -> (\S+)")
_PLUGIN: Final = "org.codehaus.mojo:versions-maven-plugin:2.18.0:display-dependency-updates"
_NAMESPACE: Final = "{http://maven.apache.org/POM/4.0.0}"
_TIMEOUT_S: Final = 600
_WORKS: Final = "nothing; scripts/lock --upgrade-package {name}"


@dataclass(frozen=True, slots=True)
class Stale:
    """A pin and the newest version; `held_by` says what stands in the way, or how to take it."""

    name: str
    pinned: str
    newest: str
    held_by: str


def packages(
    pinned: Mapping[str, str], newest: Mapping[str, str], allowed: Mapping[str, str], wanted_by: Mapping[str, str]
) -> Iterator[Stale]:
    """Compare what is locked with what exists (`newest`) and with what our own bounds allow (`allowed`)."""
    for name in sorted(newest.keys() & pinned.keys()):
        if allowed.get(name) == newest[name]:
            held = _WORKS.format(name=name)
        else:
            held = wanted_by.get(name) or "what needs it, at the newest versions that go together"
        yield Stale(name, pinned[name], newest[name], held)


def updates(said: str, reasons: Mapping[str, str]) -> Iterator[Stale]:
    """Read what Maven says of newer jars; `reasons` are the comments of the pom by artifact."""
    for name, pinned, newest in _UPDATE.findall(re.sub(r"\n\[INFO\] +(?=\S+ -> )", " ", said)):
        yield Stale(
            name, pinned, newest, reasons.get(name, "nothing; change image/jars/pom.xml, then scripts/lock jars")
        )


def read_lock(text: str) -> dict[str, str]:
    """Return name -> version of a lock file."""
    return {name.lower().replace("_", "-"): version for name, version in _PIN.findall(text)}


def reasons(pom: Path = _POM) -> dict[str, str]:
    """Return the comment that stands before a dependency in the pom, by `group:artifact`."""
    builder = ET.TreeBuilder(insert_comments=True)
    tree = ET.parse(pom, ET.XMLParser(target=builder))  # noqa: S314 - our own file
    found: dict[str, str] = {}
    for dependencies in tree.iter():
        if _is_comment(dependencies) or not dependencies.tag.endswith("dependencies"):
            continue
        said = ""
        for one in dependencies:
            if _is_comment(one):
                said = " ".join((one.text or "").split())
                continue
            parts = {child.tag.removeprefix(_NAMESPACE): child.text for child in one if not _is_comment(child)}
            if said:
                found[f"{parts.get('groupId')}:{parts.get('artifactId')}"] = said
            said = ""
    return found


def _is_comment(element: ET.Element) -> bool:
    """The tag of a comment is the function that makes comments."""
    return callable(element.tag)


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        print(f"outdated: {command[0]} failed: {done.stderr.strip()[-1000:]}", file=sys.stderr)
    return done.stdout


def _allowed() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "dev.txt"
        _run(
            *(str(_UV), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--upgrade"),
            *("pyproject.toml", "--group", "dev", "--output-file", str(fresh)),
        )
        return read_lock(fresh.read_text(encoding="utf-8")) if fresh.exists() else {}


def _exact() -> dict[str, str]:
    """Return the packages that pyproject.toml pins to one version, with the comment there."""
    text = (_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    rows = re.findall(r'^  "([A-Za-z0-9._-]+)(==|.*<)[^"]*",(?: *# (.*))?$', text, re.MULTILINE)
    return {name.lower(): f"pyproject.toml: {why or 'its bound'}" for name, _, why in rows}


def main() -> int:
    """Print a line for each."""
    listed = json.loads(_run(str(_UV), "pip", "list", "--outdated", "--format", "json") or "[]")
    newest = {row["name"].lower().replace("_", "-"): row["latest_version"] for row in listed}
    pinned = read_lock(_LOCK.read_text(encoding="utf-8"))
    said = _run("mvn", "--batch-mode", "--file", str(_POM), _PLUGIN) if _has("mvn") else ""
    for one in (*packages(pinned, newest, _allowed() if newest else {}, _exact()), *updates(said, reasons())):
        print(f"{one.name}: {one.pinned} -> {one.newest}; held back by {one.held_by}")
    return 0


def _has(program: str) -> bool:
    return any((Path(folder) / program).exists() for folder in os.environ.get("PATH", os.defpath).split(os.pathsep))


if __name__ == "__main__":
    sys.exit(main())
