"""The job's Python and JVM get environments of listed variables only, and nothing of an event becomes one."""

from __future__ import annotations

from pathlib import Path

from handler.request.job import requested
from handler.sandbox.sandbox import Sandbox
from handler.settings import read_settings
from handler.spark.environment import AttemptVariables, job_variables, machine_environment

SANDBOX = Sandbox(Path("/tmp/soal-x"))
SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_ENTRY_POINT": "s3://scripts/e.py"})
ATTEMPT = AttemptVariables("run-1", "request-1", 1_900_000_000_000, 60_000)

WITHHELD = {
    "SOAL_ERRORS": "return",
    "SPARK_SUBMIT_OPTS": "-javaagent:x",
    "SPARK_REMOTE": "sc://x",
    "PYSPARK_SUBMIT_ARGS": "x",
    "HADOOP_CONF_DIR": "/etc",
    "PYTHONSTARTUP": "x",
    "AWS_LAMBDA_RUNTIME_API": "127.0.0.1:9001",
    "_HANDLER": "h",
}


def of_the_job(event: object, inherited: dict[str, str] | None = None) -> dict[str, str]:
    job = requested(event, SETTINGS, "request-1").job
    return job_variables(job, SANDBOX, ATTEMPT, inherited or {})


def of_the_machine(inherited: dict[str, str]) -> dict[str, str]:
    return machine_environment(SANDBOX, inherited, spark_home=Path("/packages/pyspark"))


def test_what_the_job_is_told() -> None:
    """The variables name its run, its deadline, and Lambda's trace, which differs in each invocation."""
    trace = {"_X_AMZN_TRACE_ID": "Root=1-5759e988"}
    found = of_the_job({"script": "s3://scripts/a.py", "clientToken": "t"}, {**trace, "MODE": "prod"})
    assert found["SOAL_RUN_ID"] == "run-1"
    assert found["SOAL_RUN_KEY"] == "t"
    assert found["SOAL_REQUEST_ID"] == "request-1"
    assert found["SOAL_DEADLINE_EPOCH_MS"] == "1900000000000"
    assert len(found["SOAL_JOB_FINGERPRINT"]) == 64
    assert found["_X_AMZN_TRACE_ID"] == trace["_X_AMZN_TRACE_ID"]
    assert found["MODE"] == "prod"
    assert "SOAL_EVENT_FILE" not in found


def test_the_function_s_variables_reach_python_and_the_handler_s_do_not() -> None:
    """Neither do variables that would change how Python or Spark starts."""
    passed = {"AWS_REGION": "r", "SW_CHECKPOINT_BUCKET": "b", "POWERTOOLS_X": "1", "MODE": "prod", "SPARK_SCRIPT": "s"}
    found = of_the_job("s3://scripts/a.py", {**passed, **WITHHELD})
    assert {name: found.get(name) for name in passed} == passed
    assert set(WITHHELD) & set(found) == set()


def test_java_has_what_it_starts_with_and_no_variable_that_may_be_a_secret() -> None:
    """Java libraries expand variables: the JVM gets only those on a list."""
    given = {"AWS_REGION": "r", "AWS_ENDPOINT_URL_S3": "http://s3", "TZ": "UTC", "LD_LIBRARY_PATH": "/var/lang/lib"}
    by_address = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/role"}
    others = {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "PGPASSWORD": "secret",
        "MODE": "prod",
        "SW_CHECKPOINT_BUCKET": "b",
        **WITHHELD,
    }
    found = of_the_machine({**given, **by_address, **others, "HOME": "/root", "PYTHONPATH": "/evil"})
    assert {name: found.get(name) for name in (*given, *by_address)} == {**given, **by_address}
    assert set(others) & set(found) == set()
    assert found["SOAL_JOURNAL"] == "/tmp/soal-x/journal.jsonl"  # also for the process that sees the driver's end
    assert (found["HOME"], found["TMPDIR"]) == ("/tmp/soal-x/home", "/tmp/soal-x/tmp")
    assert found["PYTHONPATH"].split(":")[1:] == ["/packages"]


def test_an_event_never_becomes_a_variable() -> None:
    """Only the name of the file that holds it does."""
    without = of_the_job("s3://scripts/a.py")
    found = of_the_job({"LD_PRELOAD": "evil", "PATH": "evil", "day": "evil"})
    assert set(found) - set(without) == {"SOAL_EVENT_FILE"}
    assert not any("evil" in value for value in found.values())
