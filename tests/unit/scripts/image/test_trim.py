"""The image's PySpark is trimmed of listed and replaced jars, by lists that hold no outdated entry."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import boto3.session
import botocore.session
import pytest
from univers.versions import MavenVersion

from handler.spark.installation import find_pyspark
from handler.spark.missing_dependencies import read_missing
from scripts.image.trim import UNUSED, is_of, kept, replaced, superseded, trim
from scripts.provision.jars import read_sums
from soal.source_paths import MISSING

if TYPE_CHECKING:
    from pathlib import Path

PYSPARK = find_pyspark()
assert PYSPARK is not None
SITE = PYSPARK.parent
JARS = tuple(sorted(jar.name for jar in PYSPARK.glob("jars/*.jar")))
IMAGE_JARS = MISSING.parents[1] / "jars" / "jars.sha256"
# Jars that are needed although they do not look like it.
NEEDED = (
    "ivy",  # SparkSubmit's own class does not load without it
    "hive-storage-api",  # ORC
    "icu4j",  # collations
    "jakarta.ws.rs-api",  # in the signature of a method of Spark's Utils, which Py4J looks through
    "scala-reflect",
    "arrow-vector",  # pandas functions in a derived image
    "hadoop-client-runtime",
    "orc-core",
    "avro",
)


@pytest.mark.parametrize(
    ("jar", "pattern", "matches"),
    [
        ("spark-hive_2.13-4.1.4.jar", "spark-hive", True),
        ("spark-hive-thriftserver_2.13-4.1.4.jar", "spark-hive", False),
        ("hive-shims-0.23-2.3.10.jar", "hive-shims-0.23", True),
        ("kubernetes-client-api-7.3.1.jar", "kubernetes-*", True),
        ("json4s-core_2.13-4.0.7.jar", "json", False),
        ("netty-codec-http-4.2.7.Final.jar", "netty-codec", False),
        ("netty-tcnative-boringssl-static-2.0.73.Final-linux-x86_64.jar", "netty-tcnative-boringssl-static", True),
    ],
)
def test_a_jar_is_known_by_its_name_without_versions(jar: str, pattern: str, *, matches: bool) -> None:
    """A pattern matches a whole name, not a prefix."""
    assert is_of(jar, pattern) is matches


@pytest.mark.parametrize("pattern", [pattern for row in read_missing(MISSING) for pattern in row.jars])
def test_each_name_on_the_list_is_a_jar_of_pyspark(pattern: str) -> None:
    """Every listed name is a jar of PySpark, so that an obsolete entry is noticed."""
    assert any(is_of(jar, pattern) for jar in JARS)


@pytest.mark.parametrize("name", replaced())
def test_a_replaced_jar_is_there_in_a_newer_version(name: str) -> None:
    """PySpark's version of a replaced jar is older than the image's, so that an obsolete entry is noticed."""
    old = dict(_named(jar) for jar in JARS if is_of(jar, name))
    new = dict(_named(jar) for jar in read_sums(IMAGE_JARS) if is_of(jar, name))
    both = old.keys() & new.keys()
    assert both
    assert [jar for jar in both if MavenVersion(new[jar]) <= MavenVersion(old[jar])] == []
    assert not [jar for jar in kept(JARS, ()) if is_of(jar, name)]


def _named(jar: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.+?)-(\d[\w.]*)(?:-.*)?\.jar", jar)
    assert match is not None
    return match[1], match[2]


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_stays(name: str) -> None:
    """The list matches no jar that others need."""
    found = [jar for jar in JARS if is_of(jar, name)]
    assert found
    assert set(found) <= set(kept(JARS, read_missing(MISSING)))


@pytest.mark.parametrize("name", ["spark-mllib", "spark-graphx", "spark-streaming", "breeze", "rocksdbjni"])
def test_the_full_variant_keeps_what_only_the_slim_one_leaves_out(name: str) -> None:
    """The variant full keeps the jars that only slim drops, and drops the others."""
    full = set(kept(JARS, read_missing(MISSING, "full")))
    (jar,) = (jar for jar in JARS if is_of(jar, name))
    assert jar in full
    assert jar not in kept(JARS, read_missing(MISSING))
    assert not [jar for jar in full if is_of(jar, "spark-hive")]


def test_an_installed_package_is_trimmed(tmp_path: Path) -> None:
    """Trimming removes listed and replaced jars, PySpark's zipped copy and the launchers, and nothing else."""
    jars = ("jars/rocksdbjni-9.8.4.jar", "jars/netty-common-4.2.7.Final.jar", "jars/spark-core_2.13-4.1.4.jar")
    for name in (*jars, "bin/spark-submit", "sql/session.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert trim(tmp_path, "slim").jars == 1
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["jars/spark-core_2.13-4.1.4.jar", "sql/session.py"]


def test_the_newest_interface_of_each_service_stays(tmp_path: Path) -> None:
    """The newest API version of each service stays, also for boto3's resources."""
    for name in ("ec2/2014-09-01", "ec2/2016-11-15", "s3/2006-03-01"):
        (tmp_path / "botocore" / "data" / name).mkdir(parents=True)
    (tmp_path / "botocore" / "data" / "endpoints.json").touch()
    assert [path.name for path in superseded(tmp_path)] == ["2014-09-01"]
    gone = {(path.parent.name, path.name) for path in superseded(SITE)}
    loader = botocore.session.get_session().get_component("data_loader")
    assert gone.isdisjoint((name, loader.determine_latest_version(name, "service-2")) for name, _ in gone)
    session: Any = boto3.session.Session(region_name="us-east-1")
    named = {name: session.resource(name).meta.client.meta.service_model for name in session.get_available_resources()}
    assert gone.isdisjoint((name, model.api_version) for name, model in named.items())


@pytest.mark.slow
def test_an_iceberg_table_is_settled_without_a_console() -> None:
    """The settlers' modules can be imported without the packages that the image drops."""
    absent = [name.replace("/", ".") for name in UNUSED]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}))\n"
        "import pyiceberg.catalog.glue, pyiceberg.catalog.rest, pyiceberg.table\n"
        "import handler.app, handler.functions.sweeper\n"
        "import importlib, pkgutil, safewriter.tables.iceberg as package\n"
        "for module in pkgutil.iter_modules(package.__path__, f'{package.__name__}.'):\n"
        "    importlib.import_module(module.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
