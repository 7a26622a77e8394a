"""The wheel's content besides its packages: the log store's jar, and the handler inside the command's package.

Hatch runs this when it builds a wheel, as scripts/release does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_JAR: Final = ".soal/jars/soal-logstore.jar"
_INSIDE: Final = {
    _JAR: "safewriter/jars/soal-logstore.jar",
    # The commands use it to read events and settings. Inside `soal` its module names cannot clash with other packages.
    "handler": "soal/function/handler",
    "image/spark/spark-defaults.conf": "soal/function/image/spark/spark-defaults.conf",
    "image/spark/missing.toml": "soal/function/image/spark/missing.toml",
}


class WheelContents(BuildHookInterface[Any]):
    """Adds files of this repository to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, except to an editable installation, which finds the repository. Raises `FileNotFoundError`."""
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / _JAR).is_file():
            raise FileNotFoundError(f"{root / _JAR} is missing; run scripts/setup first, or build by scripts/release")
        build_data["force_include"].update({str(root / path): inside for path, inside in _INSIDE.items()})
