"""The audit of jars matches advisories with the assessments in advisories.toml, and finds those without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.advisories.artifacts import Artifact, Coordinates, inventory
from scripts.advisories.judge import Advisory, Known, judge, read_known
from scripts.image.trim import is_of

ROOT = Path(__file__).parents[4]
LIST = ROOT / "image" / "jars" / "advisories.toml"
ROW = (
    '[[assessments]]\nverdict = "not affected"\nwhy = "nobody calls it"\njars = ["lib"]\n'
    'advisories = [{ id = "GHSA-aaaa-aaaa-aaaa", aliases = ["CVE-2026-1"], package = "g:lib",'
    ' affected = "vers:maven/>=1.0|<1.5.Final", fixed = "1.5.Final" }]\n'
)
LIB = Coordinates("g", "lib", "1.4.Final")


def known(folder: Path, text: str = ROW) -> Known:
    """Return the list with this text."""
    path = folder / "advisories.toml"
    path.write_text(text, encoding="utf-8")
    return read_known(path)


def test_an_advisory_that_nobody_has_assessed_stands_out(tmp_path: Path) -> None:
    """Another id, another package with the same id, and the same advisory in another jar are all unassessed."""
    mine, other = Artifact("lib-1.4.Final.jar", LIB), Artifact("big-runtime-2.jar", LIB)
    neighbour = Artifact("lib-1.4.Final.jar", Coordinates("g", "other", "1"))
    assessed = Advisory("GHSA-aaaa-aaaa-aaaa", (), "g:lib", "1.5.Final")
    found = {
        LIB: [assessed, Advisory("GHSA-bbbb-bbbb-bbbb", (), "g:lib", "")],
        neighbour.coordinates: [Advisory("GHSA-aaaa-aaaa-aaaa", (), "g:other", "")],
    }
    verdicts = judge([mine, other, neighbour], found, known(tmp_path))
    assert [(one.artifact, one.advisory.id, one.advisory.package) for one in verdicts.unassessed] == [
        (mine, "GHSA-bbbb-bbbb-bbbb", "g:lib"),
        (other, "GHSA-aaaa-aaaa-aaaa", "g:lib"),
        (other, "GHSA-bbbb-bbbb-bbbb", "g:lib"),
        (neighbour, "GHSA-aaaa-aaaa-aaaa", "g:other"),
    ]
    assert [(one.why, [each.artifact for each in findings]) for one, findings in verdicts.assessed] == [
        ("nobody calls it", [mine])
    ]


def test_an_advisory_is_known_by_any_of_its_names(tmp_path: Path) -> None:
    """An advisory matches by any alias, since databases use different names."""
    mine = Artifact("lib-1.4.Final.jar", LIB)
    named = Advisory("OSV-1", ("CVE-2026-1",), "g:lib", "")
    assert judge([mine], {LIB: [named]}, known(tmp_path)).unassessed == ()


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [
        ("0.9", False),
        ("1.0", True),
        ("1.4.Final", True),
        ("1.5.Final", False),
        ("1.10", False),
        ("1.5.Final-rc1", True),
    ],
)
def test_the_list_knows_its_versions_by_maven_s_order(tmp_path: Path, version: str, *, is_affected: bool) -> None:
    """The list applies without the database; a row that matches no jar is reported as idle."""
    listed, artifact = known(tmp_path), Coordinates("g", "lib", version)
    found = listed.advisories([artifact])
    assert [one.id for one in found.get(artifact, ())] == ["GHSA-aaaa-aaaa-aaaa"] * is_affected
    idle = judge([Artifact(f"lib-{version}.jar", artifact)], found, listed).idle
    assert [one.id for one in idle] == ["GHSA-aaaa-aaaa-aaaa"] * (not is_affected)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('why = "nobody calls it"', "", "why"),
        ('why = "nobody calls it"', 'why = ""', "why"),
        ('"not affected"', '"perhaps"', "verdict"),
        ('jars = ["lib"]', "jars = []", "jars"),
        ('"vers:maven/>=1.0|<1.5.Final"', '"<1.5"', "is not of the form"),
        ("fixed =", "mended =", "fixed"),
    ],
)
def test_a_row_without_a_reason_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    """An assessment names its subject, the verdict and the reason."""
    assert old in ROW
    with pytest.raises(ValueError, match=said):
        known(tmp_path, ROW.replace(old, new))


def test_the_list_of_this_repository_is_about_its_jars() -> None:
    """Each row matches a version of a jar for which it was assessed, and no jar lacks an assessment."""
    listed = read_known(LIST)
    held = inventory(ROOT, ROOT / ".soal")
    found = listed.advisories({one.coordinates for one in held.artifacts})
    verdicts = judge(held.artifacts, found, listed)
    assert [str(one) for one in verdicts.idle] == []
    assert [(one.artifact.jar, str(one.advisory)) for one in verdicts.unassessed] == []
    for assessment, findings in verdicts.assessed:
        jars = {one.artifact.jar for one in findings}
        assert [one for one in assessment.jars if not any(is_of(jar, one) for jar in jars)] == [], assessment.why


def test_code_that_is_said_to_be_removed_is_removed() -> None:
    """The reason names the line that removes the code from the image."""
    unwanted = (ROOT / "image" / "jars" / "unwanted.txt").read_text(encoding="utf-8").splitlines()
    lines = {one.removed_by for one in read_known(LIST).assessments if one.removed_by is not None}
    assert lines <= set(unwanted)
