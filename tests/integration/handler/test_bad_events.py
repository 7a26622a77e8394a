"""Bad events and bad settings: a usage error that names the field, exit 2, nothing started, nothing written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from handler.app import handle
from handler.json_document import schema_text
from handler.outcome.result import Result, exit_status
from handler.outcome.state import State
from handler.services import Services
from tests.support import service_events
from tests.support.memory_store import MemoryObjectStore
from tests.support.walks import new_walk

if TYPE_CHECKING:
    from handler.stages.progress import Progress
    from safewriter.objects import Location

SCRIPT = "s3://scripts/job.py"
GOOD_ENVIRONMENT = {"SW_CHECKPOINT_BUCKET": "checkpoints"}
SQS = {"eventSource": "aws:sqs", "messageId": "m-1", "body": "hello"}


class World:
    """The handler's surroundings, which record everything that it does."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def services(self) -> Services:
        return Services(client=self._client, store=self._store, start_child=self._start, supervision=self._supervision)

    def _store(self, location: Location) -> MemoryObjectStore:
        self.done.append(f"store {location}")
        return MemoryObjectStore()

    def _client(self) -> Any:
        self.done.append("client")
        raise AssertionError

    def _start(self, *_: object, **__: object) -> Any:
        self.done.append("child")
        raise AssertionError

    def _supervision(self, *_: object, **__: object) -> Any:
        self.done.append("supervision")
        raise AssertionError


def answer(event: object, environment: dict[str, str]) -> tuple[Result, World, Progress]:
    world = World()
    progress = new_walk()
    return handle(event, progress, environment, world.services()), world, progress


def job(**fields: object) -> dict[str, object]:
    return {"entryPoint": SCRIPT, **fields}


def conf(key: str, value: object = "x") -> dict[str, object]:
    return job(conf={key: value})


BAD_EVENTS: dict[str, tuple[object, str]] = {
    "nothing": ({}, "entryPoint"),
    "null": (None, "event"),
    "a number": (7, "event"),
    "a list": ([SCRIPT], "event"),
    "no script, only arguments": ({"entryPointArguments": ["a"]}, "entryPoint"),
    "an unknown field": (job(entrypointargs=["a"]), "entrypointargs"),
    "a misspelt entry point": ({"entrypoint": SCRIPT}, "entrypoint"),
    "a local path": ({"entryPoint": "/var/task/job.py"}, "entryPoint"),
    "a web address": ({"entryPoint": "https://example.com/job.py"}, "entryPoint"),
    "a bad bucket name": ({"entryPoint": "s3://UPPER_case/job.py"}, "entryPoint"),
    "no key": ({"entryPoint": "s3://scripts"}, "entryPoint"),
    "a jar": ({"entryPoint": "s3://scripts/job.jar"}, "entryPoint"),
    "a control character in the path": ({"entryPoint": "s3://scripts/a\nb.py"}, "entryPoint"),
    "a script alone that is none": ("s3://scripts/", "entryPoint"),
    "both names of the script": (job(script=SCRIPT), "script"),
    "arguments as one string": (job(entryPointArguments="--day 1"), "entryPointArguments"),
    "an argument that is a number": (job(entryPointArguments=["--day", 1]), "entryPointArguments[1]"),
    "an argument with a NUL": (job(entryPointArguments=["a\0b"]), "entryPointArguments[0]"),
    "an argument that is too long": (job(entryPointArguments=["a" * 65_537]), "entryPointArguments[0]"),
    "too many arguments": (job(entryPointArguments=["a"] * 201), "entryPointArguments"),
    "too long arguments together": (job(entryPointArguments=["a" * 30_000] * 10), "entryPointArguments"),
    "a token with blanks": (job(clientToken="my token"), "clientToken"),
    "an empty token": (job(clientToken=""), "clientToken"),
    "a token that is too long": (job(clientToken="t" * 81), "clientToken"),
    "a name with a line end": (job(name="a\nb"), "name"),
    "tags that are a list": (job(tags=["team"]), "tags"),
    "a tag that is a number": (job(tags={"team": 1}), "tags.team"),
    "too many tags": (job(tags={str(n): "x" for n in range(51)}), "tags"),
    "a Python file that is none": (job(pyFiles=["s3://lib/common.jar"]), "pyFiles[0]"),
    "Python files of one name": (job(pyFiles=["s3://lib/a/x.zip", "s3://lib/b/x.zip"]), "pyFiles"),
    "a setting that is a number": (conf("spark.sql.shuffle.partitions", 2), "conf.spark.sql.shuffle.partitions"),
    "a setting of something else": (conf("hive.exec.scratchdir"), "conf.hive.exec.scratchdir"),
    "another master": (conf("spark.master", "yarn"), "conf.spark.master"),
    "packages": (conf("spark.jars.packages", "a:b:1"), "conf.spark.jars.packages"),
    "an agent": (conf("spark.driver.extraJavaOptions", "-javaagent:x"), "conf.spark.driver.extraJavaOptions"),
    "another class path": (conf("spark.driver.extraClassPath", "/tmp/x"), "conf.spark.driver.extraClassPath"),
    "another log store": (conf("spark.delta.logStore.s3a.impl"), "conf.spark.delta.logStore.s3a.impl"),
    "another log store in other letters": (conf("spark.Delta.LogStore.class"), "conf.spark.Delta.LogStore.class"),
    "no idempotency": (
        conf("spark.databricks.delta.commit.idempotencyCheck.enabled", "false"),
        "conf.spark.databricks.delta.commit.idempotencyCheck.enabled",
    ),
    "another transaction": (
        conf("spark.databricks.delta.write.txnAppId"),
        "conf.spark.databricks.delta.write.txnAppId",
    ),
    "a directory outside /tmp": (conf("spark.sql.warehouse.dir", "/var/x"), "conf.spark.sql.warehouse.dir"),
    "a directory that climbs out": (conf("spark.eventLog.dir", "file:///tmp/../etc"), "conf.spark.eventLog.dir"),
    "another local directory": (conf("spark.local.dir", "/tmp/x"), "conf.spark.local.dir"),
    "a secret": (conf("spark.hadoop.fs.s3a.secret.key"), "conf.spark.hadoop.fs.s3a.secret.key"),
    "a variable": (conf("spark.executorEnv.LD_PRELOAD"), "conf.spark.executorEnv.LD_PRELOAD"),
    "a line end in a setting": (conf("spark.app.name", "a\nspark.master=x"), "conf.spark.app.name"),
    "more heap than memory": (conf("spark.driver.memory", "8g"), "conf.spark.driver.memory"),
    "no heap": (conf("spark.driver.memory", "lots"), "conf.spark.driver.memory"),
    "another master by parameter": (job(sparkSubmitParameters="--master yarn"), "sparkSubmitParameters"),
    "a setting by parameter": (
        job(sparkSubmitParameters="--conf spark.jars.ivy=/tmp/i"),
        "sparkSubmitParameters.spark.jars.ivy",
    ),
    "a setting twice": (
        job(conf={"spark.app.name": "1"}, sparkSubmitParameters="--conf spark.app.name=2"),
        "sparkSubmitParameters",
    ),
    "an open quote": (job(sparkSubmitParameters="--conf 'spark.a"), "sparkSubmitParameters"),
    "an argument among the parameters": (job(sparkSubmitParameters="job.py"), "sparkSubmitParameters"),
    "a class": (job(sparkSubmitParameters="--class A"), "sparkSubmitParameters"),
    "the cloud's form without a driver": ({"jobDriver": {}}, "jobDriver.sparkSubmit"),
    "the cloud's form with another field": (
        {"jobDriver": {"sparkSubmit": {"entryPoint": SCRIPT}}, "executionIamPolicy": {}},
        "executionIamPolicy",
    ),
    "a bad path in the cloud's form": (
        {"jobDriver": {"sparkSubmit": {"entryPoint": "job.py"}}},
        "jobDriver.sparkSubmit.entryPoint",
    ),
    "the cloud's form with a jar": (
        {"jobDriver": {"sparkSubmit": {"entryPoint": SCRIPT, "sparkSubmitParameters": "--jars s3://scripts/x.jar"}}},
        "jobDriver.sparkSubmit.sparkSubmitParameters",
    ),
    "two messages": ({"Records": [SQS, SQS]}, "Records"),
    "no record": ({"Records": []}, "Records"),
    "a message of Amazon MQ": (service_events.mq(), "eventSource"),
    "an HTTP request": (service_events.function_url(), "requestContext"),
    "a state of Step Functions": (service_events.task(job()), "input"),
    "a batch of Kafka without offsets": ({"eventSource": "aws:kafka", "records": {"t-0": [{}]}}, "records"),
    "a record of another service": ({"Records": [{"eventSource": "aws:ses"}]}, "Records[0].eventSource"),
    "a message without an id": ({"Records": [{**SQS, "messageId": ""}]}, "Records[0].messageId"),
    "a bad job in a message": (
        {"Records": [{**SQS, "body": json.dumps({"entryPoint": "x"})}]},
        "Records[0].body.entryPoint",
    ),
    "a message for which no script is named": ({"Records": [SQS]}, "entryPoint"),
    "an object without its bucket": ({"Records": [{"eventSource": "aws:s3", "s3": {}}]}, "Records[0].s3.bucket"),
    "any other event for which no script is named": ({"day": "2026-11-20"}, "entryPoint"),
}

BAD_SETTINGS: dict[str, tuple[dict[str, str], str]] = {
    "no checkpoint bucket": ({"SW_CHECKPOINT_BUCKET": ""}, "SW_CHECKPOINT_BUCKET"),
    "a bad checkpoint bucket": ({"SW_CHECKPOINT_BUCKET": "Not_A_Bucket"}, "SW_CHECKPOINT_BUCKET"),
    "a lead that is no number": ({"SW_WARN_BEFORE_MS": "30s"}, "SW_WARN_BEFORE_MS"),
    "no lead": ({"SW_WARN_BEFORE_MS": "0"}, "SW_WARN_BEFORE_MS"),
    "an audit log that is neither": ({"SW_AUDIT_LOG": "perhaps"}, "SW_AUDIT_LOG"),
    "another way of errors": ({"SOAL_ERRORS": "ignore"}, "SOAL_ERRORS"),
    "another compiler": ({"SOAL_JIT": "fast"}, "SOAL_JIT"),
    "a script without its bucket": ({"SPARK_SCRIPT": "job.py"}, "SCRIPT_BUCKET"),
    "a script that is none": ({"SPARK_SCRIPT": "job.sh", "SCRIPT_BUCKET": "scripts"}, "SPARK_SCRIPT"),
    "an entry point that is none": ({"SOAL_ENTRY_POINT": "job.py"}, "SOAL_ENTRY_POINT"),
    "two scripts": (
        {"SOAL_ENTRY_POINT": SCRIPT, "SPARK_SCRIPT": "job.py", "SCRIPT_BUCKET": "scripts"},
        "SOAL_ENTRY_POINT",
    ),
    "an endpoint that is no URL": ({"AWS_ENDPOINT_URL_S3": "localhost:9000"}, "AWS_ENDPOINT_URL_S3"),
    "a temporary directory that is not there": ({"TMPDIR": "/no/such/tmp"}, "TMPDIR"),
    "a Java that is not there": ({"JAVA_HOME": "/no/such/java"}, "JAVA_HOME"),
    "a home that is not there": ({"SOAL_HOME": "/no/such/soal"}, "SOAL_HOME"),
}


@pytest.mark.parametrize(("event", "field"), BAD_EVENTS.values(), ids=BAD_EVENTS.keys())
def test_a_bad_event_is_a_usage_error(event: object, field: str) -> None:
    """It names the field and the remedy; nothing was started and nothing was written."""
    check(*answer(event, GOOD_ENVIRONMENT), field)


@pytest.mark.parametrize(("setting", "name"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys())
def test_a_bad_setting_is_a_usage_error(setting: dict[str, str], name: str) -> None:
    """It names the variable and the remedy; nothing was started and nothing was written."""
    check(*answer(job(), {**GOOD_ENVIRONMENT, **setting}), name)


def test_the_test_of_a_notification_is_skipped() -> None:
    """Nothing is started or written, and nothing has failed: a queue may drop the message."""
    environment = {**GOOD_ENVIRONMENT, "SOAL_ENTRY_POINT": SCRIPT}
    result, world, _ = answer(service_events.s3_test(), environment)
    assert (result.state, result.error, exit_status(result), world.done) == (State.SKIPPED, None, 0, [])
    assert "no object has come" in result.state_details


def test_too_little_memory_is_a_usage_error() -> None:
    """A function in which Spark could not start reports that before anything begins."""
    world = World()
    progress = new_walk(memory_mb=512)
    check(handle(job(), progress, GOOD_ENVIRONMENT, world.services()), world, progress, "memory size")


def test_a_secret_in_a_bad_event_is_not_repeated() -> None:
    """The message shows the value, but not a secret in it."""
    result, _, _ = answer(job(entryPointArguments="--password hunter22"), GOOD_ENVIRONMENT)
    assert "hunter22" not in result.model_dump_json()


def check(result: Result, world: World, progress: Progress, field: str) -> None:
    assert world.done == []
    assert result.error is not None
    assert (result.error.type, result.error.field) == ("UsageError", field)
    assert result.error.message.startswith(f"{field}: ")
    assert "pydantic" not in result.error.message
    assert "\n" not in result.state_details
    assert exit_status(result) == 2
    assert result.run_id is None
    assert progress.settled is None
    Draft202012Validator(json.loads(schema_text(Result))).validate(result.document())
