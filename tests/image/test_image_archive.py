"""The class-data archive in the image: valid, used by jobs, and reported when it is unusable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.image.jobs import APPENDS

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.image.docker import Docker
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow]

CLASSES_MIN = 8000
SHARE_MIN = 0.95
LAMBDAS_MIN = 0.9
CHECK = """
from handler.spark.classpath import archived_jars
from handler.spark.installation import pyspark_home
from pathlib import Path
import subprocess, sys
home = Path("/opt/soal")
paths = ":".join(map(str, archived_jars(pyspark_home(), home)))
sys.exit(subprocess.call([str(home / "java/bin/java"), "-Xshare:on", f"-XX:SharedArchiveFile={home / 'spark.jsa'}",
    "-cp", paths, "org.apache.spark.deploy.SparkSubmit", "--version"]))
"""


def test_java_starts_with_the_archive_or_not_at_all(daemon: Docker, image: str) -> None:
    """With -Xshare:on a jar with another time stamp would be an error: the layers have kept all time stamps."""
    way = ("run", "--rm", "--network", "none", "--read-only", "--user", "4711:4711", "--entrypoint", "python3")
    address = ("--env", "SPARK_LOCAL_IP=127.0.0.1", "--env", "SPARK_LOCAL_HOSTNAME=localhost")
    daemon.read(*way, *address, image, "-c", CHECK, timeout_s=120)


def test_a_job_takes_its_classes_from_the_archive(cage: Cage, tmp_path: Path) -> None:
    """Nearly all classes that a guarded append loads from jars are in the archive, and there is no warning."""
    tmp_path.chmod(0o777)  # the function runs as another user, and empties its own /tmp after the job
    with cage.function(
        {"JAVA_TOOL_OPTIONS": "-Xlog:class+load=info:file=/log/classes.log"}, mounts=[f"{tmp_path}:/log"]
    ) as function:
        result = cage.run(function, APPENDS)
    assert (result.state, result.warnings) == ("SUCCESS", ()), result.log_tail
    log = (tmp_path / "classes.log").read_text(encoding="utf-8")
    archived = log.count("source: shared objects file (top)")
    others = len(re.findall(r"source: (?:file:|jar:)\S+[.]jar", log))
    assert archived > CLASSES_MIN
    assert archived / (archived + others) > SHARE_MIN
    lambdas = re.findall(r"\S+[$][$]Lambda[$]\S+ source: (.*)", log)
    assert sum(source.startswith("shared") for source in lambdas) / len(lambdas) > LAMBDAS_MIN


def test_a_job_that_lost_the_archive_says_so(cage: Cage, daemon: Docker, image: str, tmp_path: Path) -> None:
    """One jar with another time stamp silently disables the archive, so the result warns."""
    jar = "/opt/soal/jars/hadoop-aws-3.4.2.jar"
    made = daemon.read("create", image).strip()
    try:
        daemon.read("cp", f"{made}:{jar}", str(tmp_path / "touched.jar"))
    finally:
        daemon.read("rm", made)
    (tmp_path / "touched.jar").touch()
    with cage.function(mounts=[f"{tmp_path / 'touched.jar'}:{jar}:ro"]) as function:
        result = cage.run(function, APPENDS)
    assert result.state == "SUCCESS", result.log_tail
    (warning,) = result.warnings
    assert "Java did not take the class-data archive /opt/soal/spark.jsa" in warning
