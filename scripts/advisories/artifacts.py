"""Find the Maven artifacts in jars, including shaded ones."""

from __future__ import annotations

import importlib.util
import re
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from handler.spark.missing_dependencies import read_missing
from scripts.image.trim import is_of, kept
from scripts.provision.jars import LISTS, read_sums
from soal.source_paths import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PROPERTIES: Final = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_CLASSIFIER: Final = re.compile(r"(-tests|-shaded-protobuf)?\.jar")
_NAMES: Final = "image/jars/artifacts.toml"
# Set-up does not fetch the jars of these lists. Their names tell the artifacts, and they contain no others, except for
# OpenLineage's: whoever adds that jar to an image has its libraries, too.
_BY_NAME: Final = ("full-jars", "derived")


class UnknownJarError(Exception):
    """A jar is missing, or its artifact is unknown."""


@dataclass(frozen=True, slots=True, order=True)
class Coordinates:
    """Maven's name for a version of an artifact."""

    group: str
    name: str
    version: str

    @property
    def package(self) -> str:
        """The package name in advisories."""
        return f"{self.group}:{self.name}"

    @property
    def purl(self) -> str:
        """The package URL (https://github.com/package-url/purl-spec)."""
        return f"pkg:maven/{quote(self.group)}/{quote(self.name)}@{quote(self.version)}"

    def __str__(self) -> str:
        return f"{self.package}:{self.version}"


@dataclass(frozen=True, slots=True, order=True)
class Artifact:
    """An artifact and the jar that contains it."""

    jar: str
    coordinates: Coordinates


@dataclass(frozen=True, slots=True)
class Names:
    """What the jars do not name themselves: groups of their artifacts, and artifacts inside them."""

    groups: Mapping[str, str]
    inside: Mapping[str, tuple[Coordinates, ...]]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All artifacts, and the number of jars with them."""

    artifacts: tuple[Artifact, ...]
    jars: int


def described(path: Path) -> tuple[Coordinates, ...]:
    """Return the artifacts that a jar names itself, in the pom.properties files from Maven."""
    contents = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if _PROPERTIES.fullmatch(member):
                lines = archive.read(member).decode("utf-8", "replace").splitlines()
                pairs = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
                words = [pairs.get(key, "").strip() for key in ("groupId", "artifactId", "version")]
                if all(words):
                    contents.append(Coordinates(*words))
    return tuple(contents)


def artifacts(jar: str, inside: Iterable[Coordinates], names: Names) -> tuple[Artifact, ...]:
    """Return the artifacts of one jar, from its file name and from `inside`, the artifacts that it names itself.

    Raises `UnknownJarError` for a jar that neither names its artifact nor has a group in `names`.
    """
    contents = set(inside)
    for pattern, others in names.inside.items():
        if is_of(jar, pattern):
            contents.update(others)
    if not any(jar.startswith((f"{item.name}-{item.version}.", f"{item.name}-{item.version}-")) for item in contents):
        contents.add(_by_name(jar, names))
    return tuple(Artifact(jar, entry) for entry in sorted(contents))


def _by_name(jar: str, names: Names) -> Coordinates:
    for name, group in names.groups.items():
        if jar.startswith(f"{name}-") and jar[len(name) + 1].isdigit():
            return Coordinates(group, name, _CLASSIFIER.sub("", jar.removeprefix(f"{name}-")))
    raise UnknownJarError(f"{jar} does not say which Maven artifact it is: add its group to {_NAMES}")


def read_names(path: Path) -> Names:
    """Read image/jars/artifacts.toml."""
    with path.open("rb") as file:
        document = tomllib.load(file)
    groups = {name: group for group, artifacts in document["groups"].items() for name in artifacts}
    inside: dict[str, tuple[Coordinates, ...]] = {}
    for row in document["inside"]:
        inside[row["jar"]] = tuple(Coordinates(*text.split(":")) for text in row["holds"])
    return Names(groups, inside)


def inventory(root: Path, home: Path) -> Inventory:
    """Return the artifacts in the image's jars, PySpark's included, and in the jars of tests and derived images.

    `root` is the repository, `home` the folder of fetched jars. Raises `UnknownJarError`.
    """
    names = read_names(root / _NAMES)
    folders: list[tuple[Path | None, tuple[str, ...]]] = [_pyspark()]
    for name, folder_of_list in LISTS.items():
        jars = tuple(read_sums(root / folder_of_list / "jars.sha256"))
        folders.append((None if name in _BY_NAME else home / name, jars))
    all_artifacts: list[Artifact] = []
    for folder, jars in folders:
        for jar in jars:
            all_artifacts += artifacts(jar, () if folder is None else _read(folder / jar), names)
    return Inventory(tuple(sorted(set(all_artifacts))), len({artifact.jar for artifact in all_artifacts}))


def _pyspark() -> tuple[Path, tuple[str, ...]]:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UnknownJarError("PySpark is not installed here: run scripts/setup")
    folder = Path(spec.origin).parent / "jars"
    return folder, kept(sorted(path.name for path in folder.glob("*.jar")), read_missing(MISSING))


def _read(path: Path) -> tuple[Coordinates, ...]:
    try:
        return described(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UnknownJarError(f"{path.name} cannot be read ({error}): run scripts/setup") from error
