"""The components of an image, as a CycloneDX document: Python packages, jars with checksums, Java, the base.

The program reads them from the image, so the document lists the actual content and not the requested one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scripts.image.docker import Docker

_SPECIFICATION: Final = "1.6"  # https://cyclonedx.org/docs/1.6/json/
_TIMEOUT_S: Final = 300
# Runs in the image, with only Python.
_LOOK: Final = r"""
import hashlib, importlib.metadata, json, re, zipfile
from pathlib import Path
home = Path("/opt/soal")
def jar(path):
    names = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.properties", member):
                lines = archive.read(member).decode("utf-8", "replace").splitlines()
                found = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
                names.append({key: value.strip() for key, value in found.items()})
    own = [name for name in names if path.name.startswith(name.get("artifactId", "?"))]
    maven = own[0] if own else None
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "maven": maven}
folders = (home / "python/pyspark/jars", home / "jars", home / "extra")
print(json.dumps({
    "python": sorted((d.metadata["Name"], d.version, d.metadata.get("License-Expression") or "")
        for d in importlib.metadata.distributions(path=[str(home / "python")])),
    "jars": [jar(path) for folder in folders for path in sorted(folder.glob("*.jar"))],
    "java": dict(line.split("=", 1) for line in (home / "java/release").read_text().splitlines() if "=" in line),
}))
"""


def inventory(docker: Docker, image: str) -> dict[str, Any]:
    """Return the document for an image that the daemon has. Raises `DockerError`."""
    way = ("run", "--rm", "--network", "none", "--read-only", "--entrypoint", "python3")
    contents = json.loads(docker.read(*way, image, "-c", _LOOK, timeout_s=_TIMEOUT_S))
    facts = json.loads(docker.read("image", "inspect", "--format", "[{{json .Id}},{{json .Config.Labels}}]", image))
    return document(image, facts[0], facts[1] or {}, contents)


def document(image: str, digest: str, labels: dict[str, str], contents: dict[str, Any]) -> dict[str, Any]:
    """Build a CycloneDX document from the data read from the image."""
    java = {"type": "platform", "name": "OpenJDK", "version": contents["java"]["JAVA_VERSION"].strip('"')}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": _SPECIFICATION,
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": image,
                "version": labels.get("org.opencontainers.image.version", digest),
                "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
            },
            "properties": [{"name": name, "value": value} for name, value in sorted(labels.items())],
        },
        "components": [java, *map(_package, contents["python"]), *map(_jar, contents["jars"])],
    }


def _package(row: list[str]) -> dict[str, Any]:
    name, version, licence = row
    plain = name.lower().replace("_", "-")
    component: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{plain}@{version}",
    }
    return {**component, "licenses": [{"expression": licence}]} if licence else component


def _jar(row: dict[str, Any]) -> dict[str, Any]:
    """Return a jar's component, named by the Maven artifact in it, else by its file."""
    hashes = [{"alg": "SHA-256", "content": row["sha256"]}]
    maven = row["maven"]
    if maven is None:
        return {"type": "library", "name": row["file"], "hashes": hashes}
    group, artifact, version = maven["groupId"], maven["artifactId"], maven["version"]
    return {
        "type": "library",
        "group": group,
        "name": artifact,
        "version": version,
        "purl": f"pkg:maven/{group}/{artifact}@{version}",
        "hashes": hashes,
    }
