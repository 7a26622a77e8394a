"""The image as Lambda runs it: read-only, no capability, a user without a name, limits of memory and processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.accommodations import write_csv
from scripts.emulator.container import Confinement
from scripts.emulator.rie import LambdaEmulator
from scripts.local.sample import JOBS
from tests.image.jobs import APPENDS
from tests.support.lake import LAKE, Lake

if TYPE_CHECKING:
    from scripts.emulator.container import ContainerEmulator
    from soal.testing.s3 import EmbeddedS3
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow]

MAIN_JOB = (JOBS / "accommodations_delta.py").read_text(encoding="utf-8")
ROWS = 500
# Fields that differ between runs by their nature.
PASSING = ("runId", "timings", "memory", "resultUri", "resumeToken")
LOOKS_ROUND = """
    import os
    for place in ("/opt/soal/note", "/var/note", "/dev/shm/note", os.path.expanduser("~/note"), "note", "/tmp/note"):
        try:
            open(place, "w").close()
            print(place.split("/")[-1], "written")
        except OSError as error:
            print(place, error.strerror)
    room = os.statvfs("/tmp")
    rights = next(line for line in open("/proc/self/status") if line.startswith("CapEff")).split()[1]
    print(os.getuid(), int(rights, 16), room.f_blocks * room.f_frsize >> 20)
    """
FINDS_OURS = """
    from importlib.util import find_spec
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import udf
    def found(_):
        return " ".join(name for name in ("safewriter", "handler", "scripts", "infra") if find_spec(name))
    print("driver:", found(0))
    print("worker:", *SparkSession.builder.getOrCreate().range(1).select(udf(found)("id")).first())
    """
SLEEPS = f"""
    import time
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import udf
    spark = SparkSession.builder.getOrCreate()
    from safewriter import SafeWriter
    spark.range(3).write.format("delta").save("s3a://{LAKE}/late")
    slow = udf(lambda number: time.sleep(600) or number, "long")
    with SafeWriter(spark, "s3a://{LAKE}/late") as sw:
        spark.range(4).select(slow("id").alias("id")).write.format("delta").mode("append").save(sw.table)
        sw.success()
    """
EATS = """
    eaten = []
    for _ in range(400):
        eaten.append(b"x" * (16 << 20))
    """
FORKS = """
    import os, subprocess, sys
    started = 0
    try:
        for _ in range(5000):
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
            started += 1
    except OSError as error:
        print("stopped", started > 20, error.strerror)
    os._exit(7)
    """


def below_first(function: ContainerEmulator) -> list[str]:
    """Return the processes in the container besides the emulator and the handler."""
    lines = [" ".join(process.cmdline()) for process in function.processes()[1:]]
    return [line for line in lines if "awslambdaric" not in line]


def test_the_main_job_gives_the_same_document_on_the_host_and_in_the_image(
    cage: Cage, lake: EmbeddedS3, tmp_path: Path
) -> None:
    """State, writes, versions and warnings are equal to the last byte; only run-specific fields differ."""
    with (tmp_path / "data.csv").open("w", encoding="utf-8", newline="") as file:
        write_csv(file, ROWS)
    lake.observer().put_object(Bucket=LAKE, Key="data.csv", Body=(tmp_path / "data.csv").read_bytes())
    documents: list[dict[str, Any]] = []
    for function in (LambdaEmulator(cage.variables, timeout_s=120, memory_mb=2048), cage.function()):
        table = Lake(lake.observer(), lake.endpoint, "main")
        arguments = ["--source", f"s3a://{LAKE}/data.csv", "--table", table.table]
        with function as running:
            result = cage.run(running, MAIN_JOB, entryPointArguments=arguments)
        assert result.state == "SUCCESS", result.log_tail
        document = json.loads(json.dumps(result.document()))
        assert document["writes"][0]["rows"] == ROWS
        for write in document["writes"]:
            del write["checkpoint"], write["runId"]
        documents.append({name: value for name, value in document.items() if name not in PASSING})
        for key in lake.keys(LAKE, "main/"):
            lake.observer().delete_object(Bucket=LAKE, Key=key)
    assert documents[0] == documents[1]


def test_of_ours_a_job_imports_the_guard_alone(cage: Cage) -> None:
    """In driver and workers every other module name is free for the job's own modules."""
    with cage.function() as function:
        result = cage.run(function, FINDS_OURS)
    assert result.log_tail == ("driver: safewriter", "worker: safewriter")


def test_only_tmp_can_be_written_and_the_user_is_nobody(cage: Cage) -> None:
    """The root is read-only, there is no /dev/shm, no capability, and /tmp has the size of the ephemeral storage."""
    with cage.function() as function:
        result = cage.run(function, LOOKS_ROUND)
    assert result.state == "SUCCESS", result.log_tail
    assert result.log_tail == (
        "/opt/soal/note Read-only file system",
        "/var/note Read-only file system",
        "/dev/shm/note No such file or directory",
        "note written",
        "note written",
        "note written",
        "4711 0 1024",
    )


def test_five_jobs_of_a_container_run_in_one_jvm(cage: Cage) -> None:
    """All but the first are warm, and each leaves the same two processes, and the same empty directories."""
    left = []
    with cage.function() as function:
        for number in range(5):
            result = cage.run(function, APPENDS)
            warm = number > 0
            assert (result.state, result.cold_start, result.warm_start) == ("SUCCESS", not warm, warm), result.log_tail
            assert result.warnings == ()
            files = function.inside("find", "/tmp", "-mindepth", "2", "-type", "f").split()
            assert {Path(file).name for file in files} == {".soal-sandbox"}
            left.append((function.inside("find", "/tmp", "-mindepth", "1"), below_first(function)))
    assert left == [left[0]] * 5
    java, drivers = left[0][1]
    assert java.startswith("/opt/soal/java/bin/java ")
    assert drivers.endswith("/handler/driver/server.py")


def test_without_reuse_five_invocations_leave_nothing_behind(cage: Cage) -> None:
    """After each as few processes run as after the first, and /tmp is empty but for the handler's record."""
    left = []
    with cage.function({"SOAL_REUSE": "off"}) as function:
        for number in range(5):
            result = cage.run(function, APPENDS)
            assert (result.state, result.cold_start) == ("SUCCESS", number == 0), result.log_tail
            left.append((function.inside("find", "/tmp", "-mindepth", "1"), below_first(function)))
    assert left == [("/tmp/.soal-ground\n", [])] * 5


def test_a_deadline_is_met_in_the_container(cage: Cage, lake: EmbeddedS3) -> None:
    """The write is rolled back before the emulator's own kill, and no process of the job survives."""
    with cage.function(timeout_s=45) as function:
        result = cage.run(function, SLEEPS)
        assert below_first(function) == []
    assert result.state == "TIMED_OUT", result.log_tail
    assert [write.status for write in result.writes] == ["rolled_back"]
    assert Lake(lake.observer(), lake.endpoint, "late").rows() == 3


def test_a_job_that_eats_all_memory_is_told_apart_and_the_next_one_runs(cage: Cage) -> None:
    """The container's limit is the function's memory size; the kernel kills the job and not the handler."""
    with cage.function(memory_mb=1280) as function:
        result = cage.run(function, EATS)
        assert result.error is not None
        assert (result.state, result.error.type) == ("FAILED", "OutOfMemory"), result.log_tail
        assert "give the function more memory" in result.error.message
        assert cage.run(function, "print('alive')").state == "SUCCESS"


def test_a_job_that_starts_processes_without_end_is_stopped_and_cleaned_up(cage: Cage) -> None:
    """The limit of processes stops the job, its processes are killed, and the next job runs."""
    with cage.function(confinement=Confinement(processes_max=300)) as function:
        result = cage.run(function, FORKS)
        assert (result.state, result.exit_code) == ("FAILED", 7), result.log_tail
        assert result.log_tail == ("stopped True Resource temporarily unavailable",)
        assert below_first(function) == []
        assert cage.run(function, "print('alive')").state == "SUCCESS"


def test_a_tmp_that_forbids_execution_is_named(cage: Cage) -> None:
    """Native libraries are unpacked there: the job runs without them, or the result gives the reason."""
    with cage.function(confinement=Confinement(tmp_is_executable=False)) as function:
        result = cage.run(function, APPENDS)
    assert any("/tmp is mounted noexec" in warning for warning in result.warnings), result.warnings
