"""Events of an attacker who may invoke the function and wants more: the role's credentials, other code, a hang.

`SECRETS` are in the function's environment.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.integration.handler.hostile_conf import EVIL, STEAL, hostile_conf

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ENVIRONMENT", "SCRIPT", "SECRETS", "hostile_events"]

SCRIPT = "s3://scripts/job.py"
SECRETS = ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjEA1b2A1b2A1b2", "hunter-of-the-22nd")
ENVIRONMENT = {
    "SW_CHECKPOINT_BUCKET": "checkpoints",
    "SCRIPT_BUCKET": "scripts",
    "AWS_SECRET_ACCESS_KEY": SECRETS[0],
    "AWS_SESSION_TOKEN": SECRETS[1],
    "PGPASSWORD": SECRETS[2],
}


def _job(**fields: Any) -> dict[str, Any]:
    return {"entryPoint": SCRIPT, **fields}


def _message(body: object, **fields: Any) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": text, **fields}]}


def _upload(**fields: Any) -> dict[str, Any]:
    item = {"key": "in/a.csv", **fields}
    return {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": {"name": "lake"}, "object": item}}]}


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _deep(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def hostile_events() -> Iterator[tuple[str, Any]]:
    """Yield events with their purpose."""
    yield from _settings()
    yield from _places()
    yield from _texts()
    yield from _types()
    yield from _depths()


def _settings() -> Iterator[tuple[str, Any]]:
    for number, (key, value) in enumerate(hostile_conf().items()):
        yield f"conf {key!r}", _job(conf={"spark.sql.ansi.enabled": "true", key: value})
        if number % 4 == 0:
            yield f"message with {key!r}", _message(_job(conf={key: value}))
        if number % 4 == 1 and "\n" not in key:
            parameters = f"--conf '{key}={value}'"
            yield f"parameters {key!r}", _job(sparkSubmitParameters=parameters)
            nested = {"sparkSubmit": {"entryPoint": SCRIPT, "sparkSubmitParameters": parameters}}
            yield f"the cloud's form {key!r}", {"jobDriver": nested}
    for option in ("--master local", "--jars s3://x/y.jar", "--class A", "--properties-file /tmp/p", "--packages a:b"):
        yield f"option {option}", _job(sparkSubmitParameters=option)


def _places() -> Iterator[tuple[str, Any]]:
    for place in (
        f"s3://{EVIL}/job.py",
        f"s3a://{EVIL}/job.py",
        "s3://lake/job.py",
        "s3://scripts-2/job.py",
        "s3://scripts@evil.example/job.py",
        "s3://arn:aws:s3:eu-west-1:666666666666:accesspoint/evil/job.py",
        f"https://{EVIL}/job.py",
        "file:///tmp/job.py",
        "/var/task/handler/app.py",
        "s3://scripts/../lake/job.py\0",
        f"s3://scripts/{'é' * 140}.py",
        f"s3://scripts/{'x' * 256}.py",
        "s3://scripts/job.py,s3://lake/evil.py",
        "s3://scripts/\ud800.py",
    ):
        yield f"script {place!r}", _job(entryPoint=place)
        yield f"script alone {place!r}", place
        yield f"script in a message {place!r}", _message({"script": place})
        yield f"Python file {place!r}", _job(pyFiles=[place.replace("job.py", "lib.py")])
        yield f"Python file by parameter {place!r}", _job(sparkSubmitParameters=f"--py-files {place!r}")


def _texts() -> Iterator[tuple[str, Any]]:
    for name, text in {
        "a variable": STEAL,
        "NUL": "a\0b",
        "escape": "a\x1b[2Jb",
        "half a pair": "a\ud800b",
        "delete": "a\x7fb",
        "a C1 control": "a\x85b",
    }.items():
        yield f"argument with {name}", _job(entryPointArguments=["--day", text])
        yield f"name with {name}", _job(name=text)
        yield f"--name with {name}", _job(sparkSubmitParameters=f"--name '{text}'")
        yield f"token with {name}", _job(clientToken=text)
        yield f"tag with {name}", _job(tags={text: text})
        yield f"field with {name}", _job(**{text: 1})
        yield f"continuation with {name}", {"continuation": {"count": 1, "token": text, "event": SCRIPT}}
        yield f"message id with {name}", _message("x", messageId=text)
    for number in (16_385, 32_768, 65_536):
        yield f"{number} characters of four bytes", _job(entryPointArguments=["\U0001f600" * number])
    for size in (1_025, 200_000):
        yield f"a message id of {size} characters", _message(_job(), messageId="m" * size)
        yield f"a key of {size} characters", _upload(key="k" * size)
        yield f"a version of {size} characters", _upload(versionId="v" * size)
        yield f"an event id of {size} characters", {"detail-type": "x", "source": "y", "id": "i" * size}
        yield (
            f"a continued key of {size} characters",
            {"continuation": {"count": 1, "token": "t" * 4 * size, "event": SCRIPT}},
        )
    yield "many long arguments", _job(entryPointArguments=["x" * 60_000] * 30)


def _types() -> Iterator[tuple[str, Any]]:
    for source in ([], {}, ["aws:sqs"], {"aws:sqs": 1}, None, 7, True, "aws:evil"):
        yield f"source {source!r}", {"Records": [{"eventSource": source, "messageId": "m", "body": "x"}]}
    anything: tuple[Any, ...] = (None, True, 7, 1.5, float("nan"), [], [SCRIPT], "", "x", {"a": {}})
    for position in (*anything, 10**400, "\ud800"):
        record = {"topic": position, "partition": position, "offset": position}
        yield f"position {position!r}", {"eventSource": "aws:kafka", "records": {"t-0": [record]}}
        yield f"batch {position!r}", {"eventSource": "aws:kafka", "records": {"t-0": position}}
        yield f"topic {position!r}", {"Records": [{"EventSource": "aws:sns", "Sns": position}]}
        yield f"stream {position!r}", {"Records": [{"EventSource": "aws:kinesis", "eventID": position}]}
    for records in (*anything, [[]], [None], [{}], [{"eventSource": "aws:s3"}]):
        yield f"records {records!r}", {"Records": records}
    for value in anything:
        yield f"event {value!r}", value
        yield f"conf {value!r} as a whole", _job(conf=value)
        yield f"arguments {value!r}", _job(entryPointArguments=value)
        yield f"driver {value!r}", {"jobDriver": value}
    for count in (0, -1, 10**9, "1", True, None, 1.5):
        yield f"continuation {count!r}", {"continuation": {"count": count, "token": "t", "event": SCRIPT}}


def _depths() -> Iterator[tuple[str, Any]]:
    for depth in (500, 5_000, 100_000):
        yield f"a body nested {depth} deep", _message(_nested(depth))
        yield f"a body of objects nested {depth} deep", _message('{"a":' * depth + "1" + "}" * depth)
        yield f"a job nested {depth} deep", _message('{"script":"s3://scripts/job.py","conf":' + _nested(depth) + "}")
    for depth in (500, 50_000):
        yield f"an event nested {depth} deep", {"detail-type": "x", "source": "y", "id": "i", "detail": _deep(depth)}
        yield f"a field nested {depth} deep", _job(conf=_deep(depth))
        yield f"a continuation nested {depth} deep", {"continuation": _deep(depth)}
    again: Any = SCRIPT
    for _ in range(50):
        again = {"continuation": {"count": 1, "token": "t", "event": again}}
    yield "continuations in each other", again
