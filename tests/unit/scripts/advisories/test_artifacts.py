"""The audit of jars finds every Maven artifact in them with its coordinates, shaded ones included."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scripts.advisories.artifacts import Artifact, Coordinates, Names, UnknownJarError, artifacts, described, inventory
from scripts.provision.jars import LISTS, read_sums

ROOT = Path(__file__).parents[4]
NONE = Names({}, {})


def jar(folder: Path, name: str, *inside: Coordinates) -> Path:
    """Make a jar as Maven does, with a pom.properties file for each artifact in it."""
    with zipfile.ZipFile(folder / name, "w") as archive:
        for one in inside:
            text = f"#made by Maven\nartifactId={one.name}\ngroupId={one.group}\nversion={one.version}\n"
            archive.writestr(f"META-INF/maven/{one.group}/{one.name}/pom.properties", text)
        archive.writestr("META-INF/maven/broken/broken/pom.properties", "version=1\n")
    return folder / name


def test_what_a_jar_says_is_inside_counts(tmp_path: Path) -> None:
    """Shaded libraries in a jar are artifacts of it, besides its own."""
    own, shaded = Coordinates("org.example", "big-runtime", "2.0"), Coordinates("org.other", "netty-x", "4.1.1.Final")
    path = jar(tmp_path, "big-runtime-2.0.jar", own, shaded)
    found = artifacts(path.name, described(path), NONE)
    assert found == (Artifact(path.name, own), Artifact(path.name, shaded))
    assert shaded.purl == "pkg:maven/org.other/netty-x@4.1.1.Final"


def test_a_jar_that_does_not_say_which_it_is_needs_its_group(tmp_path: Path) -> None:
    """A jar whose own artifact is unknown is refused by name, whatever else it contains."""
    path = jar(tmp_path, "delta-spark_4.1_2.13-4.4.0.jar", Coordinates("org.other", "inner", "1"))
    with pytest.raises(UnknownJarError, match=r"delta-spark_4\.1_2\.13-4\.4\.0\.jar .*artifacts\.toml"):
        artifacts(path.name, described(path), NONE)
    names = Names({"delta-spark_4.1_2.13": "io.delta"}, {"delta-spark_4.1": (Coordinates("a", "b", "3"),)})
    found = {str(one.coordinates) for one in artifacts(path.name, described(path), names)}
    assert found == {"io.delta:delta-spark_4.1_2.13:4.4.0", "org.other:inner:1", "a:b:3"}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("core-1.11.0-tests.jar", "1.11.0"),
        ("core-2.2.2-shaded-protobuf.jar", "2.2.2"),
        ("core-33.4.8-jre.jar", "33.4.8-jre"),
    ],
)
def test_a_version_is_read_from_a_file_name(name: str, version: str) -> None:
    """A classifier after the version does not belong to the version."""
    found = artifacts(name, (), Names({"core": "g"}, {}))
    assert found == (Artifact(name, Coordinates("g", "core", version)),)


def test_a_part_of_the_name_is_not_the_jar_s_own_artifact() -> None:
    """`hadoop-client` inside hadoop-client-api is a different artifact."""
    with pytest.raises(UnknownJarError):
        artifacts("hadoop-client-api-3.4.2.jar", [Coordinates("org.apache.hadoop", "hadoop-client", "3.4.2")], NONE)


def test_every_jar_has_its_coordinates() -> None:
    """All jars of the lists and of PySpark in the image have coordinates, including shaded artifacts."""
    held = inventory(ROOT, ROOT / ".soal")
    jars = {one.jar for one in held.artifacts}
    for listed in LISTS.values():
        assert set(read_sums(ROOT / listed / "jars.sha256")) <= jars
    packages = {(one.jar.rsplit("-", 1)[0], one.coordinates.package) for one in held.artifacts}
    assert ("iceberg-spark-runtime-4.1_2.13", "com.fasterxml.jackson.core:jackson-databind") in packages
    assert ("hadoop-client-runtime", "com.nimbusds:nimbus-jose-jwt") in packages
    assert ("netty-handler", "io.netty:netty-handler") in packages
    assert not any("hive-exec" in one for one in jars), "the image leaves Hive out"


def test_a_jar_that_is_not_here_is_not_passed_over(tmp_path: Path) -> None:
    """A missing jar is an error: its content is unknown."""
    with pytest.raises(UnknownJarError, match="run scripts/setup"):
        inventory(ROOT, tmp_path)
