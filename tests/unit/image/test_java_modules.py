"""The image's Java has the modules that its jars need to load."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from handler.spark.installation import find_java, pyspark_home
from scripts.provision.place import ROOT
from tests.support.spark_session import JARS

if TYPE_CHECKING:
    from pathlib import Path

LOOK = "class Look { public static void main(String[] names) throws Exception { Class.forName(names[0]); } }"
REST = "org.apache.iceberg.shaded.org.apache.hc.client5.http.impl.io.DefaultHttpClientConnectionOperator"


@pytest.mark.slow
def test_the_client_of_a_rest_catalog_loads_with_the_modules_of_the_image(tmp_path: Path) -> None:
    """Iceberg makes each connection by this class, so without a module of its no REST catalog can be reached."""
    lines = (ROOT / "image" / "java" / "modules.txt").read_text(encoding="utf-8").splitlines()
    modules = ",".join([*(line for line in lines if not line.startswith("#")), "jdk.compiler"])
    source = tmp_path / "Look.java"
    source.write_text(LOOK, encoding="utf-8")
    path = ":".join(f"{folder}/*" for folder in (JARS, pyspark_home() / "jars"))
    java = find_java(JARS.parent, None)

    done = subprocess.run(
        [java, "--limit-modules", modules, "-cp", path, source, REST], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
