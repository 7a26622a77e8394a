"""The size of an image above its base: by layer, as Docker stores it, and by part of /opt/soal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.table import Table

from handler.spark.missing_dependencies import SLIM
from soal.console.document import document_of
from soal.console.view import View

if TYPE_CHECKING:
    from scripts.image.docker import Docker

LIMITS_MB: Final = {"slim": 660, "full": 1000}
"""The largest allowed size above the base, by variant."""
_MB: Final = 1_000_000
_OURS: Final = "/opt/soal/"
# Runs in the image: every base has Python, but not every base has du or find.
_WALK: Final = """
import collections, json, os
found = collections.Counter()
for folder, _, files in os.walk("/opt/soal"):
    for file in files:
        path = os.path.join(folder, file)
        if os.path.islink(path):
            continue
        words = os.path.relpath(path, "/opt/soal").split(os.sep)
        deep = 3 if words[:2] == ["python", "pyspark"] else 2 if words[0] == "python" else 1
        found["/".join(words[:deep] if len(words) > deep else words[:-1] or words)] += os.path.getsize(path)
print(json.dumps(found))
"""
_SHOWN_MIN_MB: Final = 0.5


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of the Dockerfile and the bytes that it adds."""

    step: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """A folder or file below /opt/soal."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an image: `layers` above the base, last first, and `parts`, largest first."""

    variant: str
    total_bytes: int
    base_bytes: int
    layers: tuple[Layer, ...]
    parts: tuple[Part, ...]

    @property
    def above_base_bytes(self) -> int:
        return self.total_bytes - self.base_bytes

    @property
    def is_within_limit(self) -> bool:
        return self.above_base_bytes <= LIMITS_MB[self.variant] * _MB


def measure(docker: Docker, image: str) -> Size:
    """Measure an image that the daemon has. Raises `DockerError`."""
    total = int(docker.read("image", "inspect", "--format", "{{.Size}}", image))
    history = docker.read("history", "--no-trunc", "--human=false", "--format", "{{json .}}", image)
    layers = above_base(history)
    script = ("run", "--rm", "--network", "none", "--entrypoint", "python3", image, "-c", _WALK)
    parts = json.loads(docker.read(*script, timeout_s=120))
    return Size(
        variant_of(docker, image),
        total,
        total - sum(layer.bytes for layer in layers),
        layers,
        tuple(
            Part(name, size)
            for name, size in sorted(parts.items(), key=lambda part: -part[1])
            if size >= _SHOWN_MIN_MB * _MB
        ),
    )


def variant_of(docker: Docker, image: str) -> str:
    """Return the image's variant, from its environment."""
    lines = docker.read("image", "inspect", "--format", "{{range .Config.Env}}{{println .}}{{end}}", image).splitlines()
    return dict(line.split("=", 1) for line in lines if line).get("SOAL_IMAGE_VARIANT", SLIM)


def above_base(history: str) -> tuple[Layer, ...]:
    """Return the layers in `docker history` down to the first step that copies our files. A derived image has more."""
    rows = [json.loads(line) for line in history.splitlines() if line]
    own_layers = [number for number, row in enumerate(rows) if _OURS in row["CreatedBy"]]
    return tuple(
        Layer(row["CreatedBy"].removesuffix("# buildkit").strip(), int(row["Size"]))
        for row in rows[: own_layers[-1] + 1 if own_layers else 0]
        if int(row["Size"])
    )


def size_view(size: Size) -> View:
    """Show the layers and parts in megabytes."""
    table = Table(box=None, header_style="dim")
    table.add_column("layer, part", overflow="ellipsis", no_wrap=True)
    table.add_column("MB", justify="right")
    for layer in reversed(size.layers):
        table.add_row(layer.step, f"{layer.bytes / 1e6:,.1f}")
    table.add_row("above the base", f"{size.above_base_bytes / 1e6:,.1f}", style="bold")
    for part in size.parts:
        table.add_row(part.name, f"{part.bytes / 1e6:,.1f}")
    return View({**document_of(size), "aboveBaseBytes": size.above_base_bytes}, (table,))
