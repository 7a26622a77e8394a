"""The handler composes a job's JVM command and Spark settings: heap, cores, compiler, S3, and no secret in a file."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.input_errors import InputError
from handler.redaction.secret_names import _CERTAIN
from handler.request.job import Job, requested
from handler.sandbox.sandbox import open_sandbox
from handler.sandbox.script import Files
from handler.settings import HandlerSettings, read_settings
from handler.spark.classpath import jars
from handler.spark.command import Command, check, compose
from handler.spark.conf import _MASKED_BY_SPARK
from handler.spark.environment import AttemptVariables
from handler.spark.installation import find_java, pyspark_home, spark_file
from handler.spark.jvm_options import MODULE_OPTIONS
from handler.spark.machine import Machine
from handler.spark.properties import read_properties
from soal.shipped import local_settings, shipped_settings

BUCKET = {"SW_CHECKPOINT_BUCKET": "checkpoints"}
SETTINGS = read_settings(BUCKET)
MACHINE = Machine(memory_mb=3008, cores_present=8)


def job(settings: HandlerSettings = SETTINGS, **fields: Any) -> Job:
    return requested({"script": "s3://scripts/job.py", **fields}, settings, "r").job


def composed(
    tmp_path: Path,
    the_job: Job | None = None,
    *,
    settings: HandlerSettings = SETTINGS,
    machine: Machine = MACHINE,
    total_ms: int = 900_000,
) -> tuple[Command, dict[str, str]]:
    with open_sandbox(tmp_path) as sandbox:
        files = Files(sandbox.scripts / "job.py", (sandbox.scripts / "lib.zip",))
        attempt = AttemptVariables("run", "request", 10**12, total_ms)
        command = compose(the_job or job(), files, sandbox, settings, machine, attempt, {"MODE": "test"})
        # Read as text: read_properties knows no escapes, and needs none here.
        text = sandbox.properties_file.read_text(encoding="utf-8").replace("\\", "")
    found = dict(line.split("=", 1) for line in text.splitlines())
    return command, found


@pytest.mark.parametrize(
    ("memory_mb", "present", "cores", "heap_mb"),
    [
        (1024, 8, 1, 512),
        (1769, 8, 1, 1150),
        (1770, 8, 2, 1151),
        (3008, 8, 2, 1956),
        (3008, 1, 1, 1956),
        (10240, 8, 6, 6656),
    ],
)
def test_cores_and_heap_follow_from_the_memory(memory_mb: int, present: int, cores: int, heap_mb: int) -> None:
    """A core for 1,769 MB, as on Lambda; a third of the memory is not heap."""
    machine = Machine(memory_mb, present)
    assert (machine.cores, machine.heap_mb) == (cores, heap_mb)


def test_java_is_started_directly(tmp_path: Path) -> None:
    """There is no shell or launcher; every word is one argument."""
    command, _ = composed(tmp_path, job(name="n; rm -rf /", entryPointArguments=["a b", "$(id)", ""]))
    assert Path(command.argv[0]).name == "java"
    assert command.argv[-4] == "io.soal.host.Host"
    assert command.environment["OMP_NUM_THREADS"] == "1"
    assert Path(command.argv[-1]).name == "server.py"
    assert command.submission[0] == "--properties-file"
    assert command.submission[2:5] == ("--name", "n; rm -rf /", "--py-files")
    assert command.submission[6:9] == ("--class", "io.soal.host.PythonDrivers", "spark-internal")
    assert command.submission[9].endswith("/scripts/job.py")
    assert command.submission[10:] == ("a b", "$(id)", "")


def test_the_machine_finds_the_job_in_a_file(tmp_path: Path) -> None:
    """Each word ends with a zero byte, which no word can contain; the job's variables are in a file beside it."""
    with open_sandbox(tmp_path) as sandbox:
        attempt = AttemptVariables("run", "request", 10**12, 900_000)
        command = compose(job(), Files(sandbox.scripts / "job.py", ()), sandbox, SETTINGS, MACHINE, attempt, {})
        assert command.argv[-3] == str(sandbox.submission_file)
        assert sandbox.submission_file.read_text().split("\0") == [*command.submission, ""]
        assert command.environment["SOAL_JOB"] == str(sandbox.job_file)
        assert json.loads(sandbox.job_file.read_text()) == {
            "variables": command.variables,
            "archives": [],
            "properties": str(sandbox.properties_file),
        }


def test_one_machine_can_run_jobs_that_differ_in_script_and_sql_settings_alone(tmp_path: Path) -> None:
    """Hadoop keeps its settings for the JVM's life; memory, compiler and the JVM's variables are fixed at its start.
    Python's variables belong to the job.
    """
    with open_sandbox(tmp_path) as sandbox:

        def command(
            the_job: Job, run: str = "one", total_ms: int = 900_000, inherited: dict[str, str] | None = None
        ) -> Command:
            attempt = AttemptVariables(run, f"request-{run}", 10**12, total_ms)
            files = Files(sandbox.scripts / "job.py", ())
            return compose(the_job, files, sandbox, SETTINGS, MACHINE, attempt, inherited or {})

        first = command(job())
        assert command(job(conf={"spark.sql.shuffle.partitions": "7"}, name="other"), "two") == first
        assert command(job(conf={"spark.driver.memory": "1g"})) != first
        assert command(job(conf={"spark.hadoop.fs.s3a.connection.maximum": "7"})) != first
        assert command(job(), total_ms=60_000) != first
        assert command(job(), inherited={"AWS_REGION": "other"}) != first
        assert command(job(), inherited={"AWS_SESSION_TOKEN": "other", "MODE": "other"}) == first


def test_the_class_path_is_jars_and_nothing_else(tmp_path: Path) -> None:
    """It holds Spark's jars, and those of set-up."""
    command, _ = composed(tmp_path)
    found = command.argv[command.argv.index("-cp") + 1].split(":")
    assert found == [str(jar) for jar in jars(pyspark_home(), SETTINGS.soal_home)]
    names = " ".join(found)
    for part in ("spark-core", "delta-spark", "iceberg-spark-runtime", "hadoop-aws", "soal-logstore"):
        assert part in names


def test_the_class_data_archive_is_used_where_there_is_one(tmp_path: Path) -> None:
    """The JVM writes to a file of this request whether it used the archive."""
    home = tmp_path / "home"
    (home / "jars").mkdir(parents=True)
    (home / "spark.jsa").touch()
    command, _ = composed(tmp_path, settings=read_settings({**BUCKET, "SOAL_HOME": str(home)}))
    assert f"-XX:SharedArchiveFile={home}/spark.jsa" in command.argv
    assert f"-Xlog:cds=info:file={command.directory.parent}/archive.log" in command.argv


def test_spark_s_events_go_to_a_folder_of_the_handler_s_if_the_owner_wants_them(tmp_path: Path) -> None:
    """The folder is there, or Spark would not start; without the variable there is no event log. The log has settings
    in clear, so it lies beside the folders that Spark reads (io.soal.disk.OwnDisk).
    """
    with open_sandbox(tmp_path) as sandbox:
        settings = read_settings({**BUCKET, "SOAL_EVENT_LOGS": "on"})
        attempt = AttemptVariables("run", "request", 10**12, 900_000)
        compose(job(), Files(sandbox.scripts / "job.py", ()), sandbox, settings, MACHINE, attempt, {})
        text = sandbox.properties_file.read_text(encoding="utf-8").replace("\\", "")
        assert f"spark.eventLog.dir=file://{sandbox.root}/spark-events\n" in text
        assert sandbox.event_logs.is_dir()
    assert composed(tmp_path)[1]["spark.eventLog.enabled"] == "false"


@pytest.mark.parametrize(
    ("setting", "value", "is_masked"),
    [
        ("spark.sql.catalog.lake.credential", "id:x", True),
        ("spark.sql.catalog.lake.header.Authorization", "Basic x", True),
        ("spark.sql.catalog.lake.header.X-Api-Key", "x", True),
        ("spark.sql.catalog.lake.s3.access-key-id", "x", True),
        ("spark.sql.catalog.lake.jdbc.password", "x", True),
        ("spark.sql.catalog.lake.uri", "https://host/a@b", False),
        ("source", "sftp://in@host/x", False),
        ("spark.sql.shuffle.partitions", "2", False),
    ],
)
def test_spark_masks_the_settings_that_the_handler_takes_for_secrets(
    tmp_path: Path, setting: str, value: str, *, is_masked: bool
) -> None:
    """Its own pattern knows few names. Spark judges name and value, and masks what a job reads of a table's properties:
    a script that copies them would write the mask.
    """
    _, conf = composed(tmp_path, settings=read_settings({**BUCKET, "SOAL_EVENT_LOGS": "on"}))
    pattern = re.compile(conf["spark.redaction.regex"])
    assert is_masked == any(map(pattern.search, (setting, value)))


@given(name=st.from_regex(_CERTAIN, fullmatch=True))
def test_spark_masks_each_name_that_is_certain_to_the_handler(name: str) -> None:
    """The two patterns are written apart, one of them for Java."""
    assert re.search(_MASKED_BY_SPARK, f"spark.sql.catalog.lake.{name}")


def test_the_compiler_and_collector_follow_from_timeout_and_cores(tmp_path: Path) -> None:
    """Short jobs get C1, few cores the serial collector; a setting may override this."""
    short, _ = composed(tmp_path, total_ms=60_000)
    long, _ = composed(tmp_path, total_ms=60_001, machine=Machine(10240, 8))
    assert "-XX:TieredStopAtLevel=1" in short.argv
    assert "-XX:+UseSerialGC" in short.argv
    assert "-XX:TieredStopAtLevel=1" not in long.argv
    assert "-XX:Tier4InvocationThreshold=50000" in long.argv
    assert "-XX:+UseParallelGC" in long.argv
    forced, _ = composed(tmp_path, settings=read_settings({**BUCKET, "SOAL_JIT": "c1"}))
    assert "-XX:TieredStopAtLevel=1" in forced.argv


def test_huge_pages_are_asked_for_where_the_kernel_gives_them_on_request(tmp_path: Path) -> None:
    """Elsewhere the JVM would only warn."""
    with_them, _ = composed(tmp_path, machine=Machine(3008, 2, has_huge_pages=True))
    without, _ = composed(tmp_path, machine=Machine(3008, 2))
    assert "-XX:+UseTransparentHugePages" in with_them.argv
    assert "-XX:+UseTransparentHugePages" not in without.argv


def test_the_settings_in_their_order(tmp_path: Path) -> None:
    """Defaults, then the function's own settings and the job's, then those that must not change."""
    own = read_settings({**BUCKET, "SOAL_CONF": '{"spark.sql.extensions": "my.Extension"}'})
    _, conf = composed(tmp_path, job(own, conf={"spark.sql.shuffle.partitions": "7"}), settings=own)
    assert conf["spark.master"] == "local[2]"
    assert conf["spark.sql.shuffle.partitions"] == "7"
    assert conf["spark.sql.extensions"].split(",")[-1] == "my.Extension"
    assert "io.delta.sql.DeltaSparkSessionExtension" in conf["spark.sql.extensions"]
    assert conf["spark.delta.logStore.s3a.impl"] == "io.soal.logstore.ConditionalS3LogStore"
    assert conf["spark.ui.enabled"] == "false"


def test_an_iceberg_catalog_goes_to_s3_as_spark_does_unless_it_says_otherwise(tmp_path: Path) -> None:
    """The image lacks Iceberg's own clients, and only SoAL's file system marks files for SafeWriter."""
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    given = {
        "spark.sql.catalog.a": catalog,
        "spark.sql.catalog.b": catalog,
        "spark.sql.catalog.b.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.sql.catalog.c": "some.other.Catalog",
    }
    own = read_settings({**BUCKET, "SOAL_CONF": json.dumps(given)})
    _, conf = composed(tmp_path, job(own), settings=own)
    assert conf["spark.sql.catalog.a.io-impl"] == "org.apache.iceberg.hadoop.HadoopFileIO"
    assert conf["spark.sql.catalog.b.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert "spark.sql.catalog.c.io-impl" not in conf


def test_a_job_may_choose_heap_and_cores(tmp_path: Path) -> None:
    """They must be within the function's limits."""
    command, conf = composed(tmp_path, job(conf={"spark.driver.memory": "1g", "spark.driver.cores": "4"}))
    assert "-Xmx1024m" in command.argv
    assert conf["spark.master"] == "local[4]"
    for size in ("100m", "3g"):
        with pytest.raises(InputError, match="does not fit"):
            check(job(conf={"spark.driver.memory": size}), SETTINGS, MACHINE)


def test_s3a_goes_where_boto3_goes(tmp_path: Path) -> None:
    """S3A uses the same endpoint and path style, with or without TLS; for Amazon's own endpoint nothing is set."""
    settings = read_settings({**BUCKET, "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "AWS_REGION": "eu-west-1"})
    _, conf = composed(tmp_path, settings=settings)
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    _, plain = composed(tmp_path)
    assert not any("endpoint" in key for key in plain)


def test_no_secret_is_in_the_properties(tmp_path: Path) -> None:
    """Credentials come from the environment."""
    _, conf = composed(tmp_path)
    assert not any(word in key for key in conf for word in ("secret", "access.key", "session.token"))


def test_the_module_options_are_spark_s_own(tmp_path: Path) -> None:
    """They are all options of Spark's launcher except the vector module. If this fails after an update, copy them."""
    source = tmp_path / "Show.java"
    source.write_text(
        "public class Show { public static void main(String[] a) {"
        " System.out.print(org.apache.spark.launcher.JavaModuleOptions.defaultModuleOptions()); } }",
        encoding="utf-8",
    )
    (launcher,) = pyspark_home().joinpath("jars").glob("spark-launcher_*.jar")
    text = subprocess.run(
        [str(find_java(SETTINGS.soal_home, SETTINGS.java_home)), "-cp", str(launcher), str(source)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert tuple(word for word in text.split() if word != "--add-modules=jdk.incubator.vector") == MODULE_OPTIONS


def test_the_files_of_the_image_are_found() -> None:
    """The defaults are settings that a job may not change, or plain tuning."""
    defaults = read_properties(spark_file(SETTINGS.soal_home, "spark-defaults.conf"))
    assert all(re.match(r"spark\.", key) for key in defaults)
    assert spark_file(SETTINGS.soal_home, "log4j2.properties").is_file()


@pytest.mark.parametrize("settings", [shipped_settings(), local_settings()])
def test_another_role_is_taken_with_the_credentials_that_all_buckets_have(settings: dict[str, str]) -> None:
    """Hadoop's own default for this looks for variables that the JVM does not have."""
    general = settings["spark.hadoop.fs.s3a.aws.credentials.provider"]
    assert settings["spark.hadoop.fs.s3a.assumed.role.credentials.provider"] == general


@pytest.mark.parametrize(
    ("memory_mb", "present", "cores"), [(2048, 16, 1), (4095, 16, 1), (8192, 16, 4), (32_768, 64, 16), (32_768, 8, 8)]
)
def test_managed_instances_have_a_core_for_each_two_gigabytes(memory_mb: int, present: int, cores: int) -> None:
    """There are not six at most, as on a plain function."""
    assert Machine(memory_mb, present, is_managed=True).cores == cores
