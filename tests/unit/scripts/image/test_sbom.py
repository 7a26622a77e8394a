"""The image's CycloneDX document lists every Python package and jar as a component."""

from __future__ import annotations

from scripts.image.sbom import document

FOUND = {
    "python": [["Typing_Extensions", "4.16.0", "PSF-2.0"], ["py4j", "0.10.9", ""]],
    "jars": [
        {"file": "a-1.jar", "sha256": "aa", "maven": {"groupId": "g", "artifactId": "a", "version": "1"}},
        {"file": "soal-logstore.jar", "sha256": "bb", "maven": None},
    ],
    "java": {"JAVA_VERSION": '"17.0.15"'},
}


def test_everything_that_was_found_is_a_component() -> None:
    """Packages and jars are listed by their PyPI and Maven URLs, others by file name; jars with checksums."""
    made = document("soal", "sha256:cc", {"org.opencontainers.image.version": "0.1"}, FOUND)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert made["metadata"]["component"]["version"] == "0.1"
    assert [(one["name"], one.get("purl")) for one in made["components"]] == [
        ("OpenJDK", None),
        ("Typing_Extensions", "pkg:pypi/typing-extensions@4.16.0"),
        ("py4j", "pkg:pypi/py4j@0.10.9"),
        ("a", "pkg:maven/g/a@1"),
        ("soal-logstore.jar", None),
    ]
    assert made["components"][1]["licenses"] == [{"expression": "PSF-2.0"}]
    assert "licenses" not in made["components"][2]
    assert made["components"][3]["hashes"] == [{"alg": "SHA-256", "content": "aa"}]
