"""The built wheel as users have it: installed into an empty folder, in a Spark that SoAL has not configured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
import zipfile
from typing import TYPE_CHECKING

import pytest

from scripts.emulator.rest_catalog import RestCatalog
from scripts.provision.place import ROOT
from scripts.tables.delta import view
from soal.local.names import CHECKPOINTS, LAKE
from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.session import SHORT_LIVED
from tests.support.cluster import CLUSTER, standalone
from tests.support.spark_session import stock_class_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]

COUNTS = """
import safewriter
tables = spark.read.format("delta").load("s3a://soal-lake/numbers"), spark.table("lake.db.numbers")
print("rows", *(table.count() for table in tables), "by", safewriter.__file__)
"""
PAGE = ROOT / "docs" / "guides" / "own-spark.md"


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as server:
        yield server


def environment(site: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SW_", "SOAL_"))}
    return {**clean, "PYTHONPATH": str(site), "PYSPARK_PYTHON": sys.executable, **more}


def test_the_wheel_has_two_packages_and_the_jar(wheel: Path) -> None:
    """It has no test, lab or script, and no module whose name a job or another package may use."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"safewriter", "soal", "soal-0.1.0.dist-info"}
    assert "safewriter/jars/soal-logstore.jar" in names
    assert "soal/function/handler/request/event.py" in names


def test_the_wheel_forces_no_engine_on_its_place(wheel: Path) -> None:
    """Nor anything that only the function needs; the command's packages are an extra."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        required = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*(;.*)?$", archive.read(name).decode(), re.MULTILINE)
    assert [package for package, condition in required if not condition] == ["boto3", "pydantic", "pyiceberg"]
    assert {package for package, condition in required if "'cli'" in condition} >= {"rich", "typer"}


def test_the_installed_command_asks_the_function_s_code_that_came_with_it(site: Path) -> None:
    """It ignores other packages called `handler`, and says which commands need a clone."""
    program = (
        "import sys; sys.argv = ['soal', 'graduate', '--help']\nfrom soal.__main__ import main\ntry:\n    main()\n"
    )
    program += "except SystemExit: pass\nimport handler, soal; print(handler.__path__[0], soal.__path__[0])"
    run = [sys.executable, "-P", "-c", program]
    shown = subprocess.run(run, env=environment(site), capture_output=True, text=True, check=True, timeout=60)
    handler, soal = shown.stdout.split()[-2:]
    assert (handler, soal) == (str(site / "soal" / "function" / "handler"), str(site / "soal"))
    local = [sys.executable, "-P", "-m", "soal", "local", "status"]
    refused = subprocess.run(local, env=environment(site), capture_output=True, text=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert "soal local needs a clone" in refused.stderr


def test_without_the_extra_the_command_says_what_to_install(site: Path) -> None:
    """One sentence says it."""
    program = "import sys; sys.modules['typer'] = None\nfrom soal.__main__ import main\nmain()"
    run = [sys.executable, "-P", "-c", program]
    done = subprocess.run(run, env=environment(site), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "soal: the command needs packages that SafeWriter does not: pip install 'soal[cli]'\n"


def test_the_page_s_example_is_guarded_on_both_formats(site: Path, s3: EmbeddedS3, tmp_path: Path) -> None:
    """It runs verbatim, in a plain session; its retry under the same key writes nothing."""
    play(site, s3, tmp_path, "local[2]")


@pytest.mark.cluster
@pytest.mark.matrix
def test_the_page_s_example_is_guarded_on_a_cluster(site: Path, s3: EmbeddedS3, tmp_path: Path) -> None:
    """As on one machine: executors need no module of SafeWriter."""
    with standalone(tmp_path, s3.environment()) as master:
        play(site, s3, tmp_path, master, **CLUSTER)


def play(site: Path, s3: EmbeddedS3, folder: Path, master: str, **variables: str) -> None:
    """Run the page's example twice under one key, and check the tables with another implementation's reader."""
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    script = folder / "example.py"
    name = f"numbers_{uuid.uuid4().hex}"
    script.write_text(f"{example}\n{COUNTS}".replace("numbers", name))
    with RestCatalog(s3, folder, f"s3a://{LAKE}/warehouse") as catalog:
        settings = {
            "spark.master": master,
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.driver.extraClassPath": stock_class_path(),
            "spark.executor.extraClassPath": stock_class_path(),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.catalog.lake.type": "rest",
            "spark.sql.catalog.lake.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",  # Iceberg's own needs KMS
            "spark.sql.catalog.lake.uri": catalog.uri,
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.hadoop.fs.s3a.endpoint": s3.endpoint,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        }
        lines = [f"{key} {value}\n" for key, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines))
        own = {"SPARK_CONF_DIR": str(folder), "SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SOAL_RUN_KEY": name}
        variables = environment(site, **s3.environment(), **own, **variables)
        for _ in range(2):
            run = [sys.executable, "-P", str(script)]
            done = subprocess.run(run, env=variables, capture_output=True, text=True, check=False, timeout=200)
            assert done.returncode == 0, done.stderr[:6000]
            assert f"rows 10 10 by {site}/safewriter/__init__.py\n" in done.stdout
    seen = view(s3.observer(), LAKE, name, s3.environment())
    assert (seen.version, seen.rows, seen.orphans) == (0, 10, ())
