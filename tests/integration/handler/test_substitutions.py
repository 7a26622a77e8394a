"""A real job gets texts in which libraries replace names by values; a server between Spark and S3 records it."""

from __future__ import annotations

import json
import re
import socket
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.integration.handler.substitution_forms import BAITS, SCRIPT, SETTINGS, VARIABLES, forms, texts
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

CHECKPOINTS, SCRIPTS = "checkpoints", "scripts"
SAYS_IT = """
import os, boto3
boto3.client("s3").put_object(Bucket="lake", Key=os.environ["OWNERS_VARIABLE"], Body=b"")
"""
BY_ITSELF = """
import os
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
hadoop = spark._jvm.org.apache.hadoop
own = hadoop.conf.Configuration()
entries = own.iterator()
while entries.hasNext():
    entry = entries.next()
    is_yarns = entry.getKey().startswith("yarn.")  # no process of YARN runs here
    assert is_yarns or "hadoop.tmp.dir" not in entry.getValue(), entry.getKey()
own.set("fs.s3a.endpoint", os.environ["AWS_ENDPOINT_URL_S3"])
own.set("fs.s3a.endpoint.region", "us-east-1")
own.set("fs.s3a.path.style.access", "true")
path = hadoop.fs.Path("s3a://lake/by-itself")
assert not path.getFileSystem(own).exists(path)
spark.range(3).write.parquet("s3a://lake/by-itself")
"""
# In each signed request.
_TOKEN_OF_A_SIGNATURE = re.compile(rb"(?im)^x-amz-security-token:.*$")


class Between:
    """A server that forwards bytes to another one, and back, and records those sent to it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._heard: list[bytearray] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def heard(self) -> bytes:
        """All bytes sent, without the token by which S3 knows a signature."""
        return _TOKEN_OF_A_SIGNATURE.sub(b"", b"\n".join(self._heard))

    def forget(self) -> None:
        """Forget the record, also of open connections."""
        for one in self._heard:
            one.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", self._port))
            heard = bytearray()
            self._heard.append(heard)
            for one, other, memory in ((client, server, heard), (server, client, bytearray())):
                threading.Thread(target=_pass, args=(one, other, memory), daemon=True).start()


def _pass(one: socket.socket, other: socket.socket, memory: bytearray) -> None:
    try:
        while data := one.recv(65_536):
            memory += data
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        one.close()
        other.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, "lake"], unlistable=[CHECKPOINTS]) as server:
        put = server.observer().put_object
        for name, text in {"everywhere": SCRIPT, "says_it": SAYS_IT, "by_itself": BY_ITSELF}.items():
            put(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        put(Bucket="lake", Key="plain/a.csv", Body=b"1\n")
        for number, text in enumerate(texts()):
            put(Bucket="lake", Key=f"named-{'colon' if ':' in text else 'none'}/{number}-{text}.csv", Body=b"1\n")
        for number, name in enumerate((*VARIABLES, *SETTINGS)):
            form = f"${{env.{name}}}" if name in VARIABLES else f"${{{name}}}"
            put(Bucket="lake", Key=f"named-one/{number}-{form}.csv", Body=b"1\n")
        yield server


@pytest.fixture(scope="module")
def between(s3: EmbeddedS3) -> Iterator[Between]:
    with Between(s3.port) as server:
        yield server


@pytest.fixture(scope="module")
def function(s3: EmbeddedS3, between: Between) -> Iterator[LambdaEmulator]:
    settings = {**SETTINGS, "spark.hadoop.test.listener": between.url}
    environment = {
        **s3.environment(),
        **VARIABLES,
        "AWS_ENDPOINT_URL_S3": between.url,
        "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
        "SOAL_CONF": json.dumps(settings),
    }
    with ExitStack() as stack:
        yield stack.enter_context(LambdaEmulator(environment, timeout_s=12 * BUSY_S, memory_mb=1769))


def run(function: LambdaEmulator, script: str, *arguments: str) -> Result:
    answer = function.invoke({"entryPoint": f"s3://{SCRIPTS}/{script}.py", "entryPointArguments": list(arguments)})
    return Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))


def test_the_listener_hears_a_variable_that_a_script_sends(function: LambdaEmulator, between: Between) -> None:
    """So the listener would record one; and the job's Python has the function's variables."""
    assert run(function, "says_it").state == "SUCCESS"
    assert b"PUT /lake/baitOfTheVariable" in between.heard


@pytest.mark.parametrize(
    "together",
    [
        pytest.param(14, id="together"),
        pytest.param(1, id="alone", marks=(pytest.mark.matrix, pytest.mark.timeout(1800))),
    ],
)
def test_no_form_carries_a_variable_or_a_setting(function: LambdaEmulator, between: Between, together: int) -> None:
    """More than sixty forms, as arguments and names of objects: in paths, SQL, identifiers, options, headers."""
    assert len(forms()) > 60
    between.forget()

    result = run(function, "everywhere", *texts(together))

    assert result.state == "SUCCESS", result.state_details.replace("\n", "|")
    lines = [line.removeprefix("ENDS ") for line in result.log_tail if line.startswith("ENDS ")]
    ends = dict(end for line in lines for end in json.loads(line))
    heard = between.heard
    assert [bait for bait in BAITS if bait.encode() in heard] == []
    ran = {name for name, each in ends.items() if "ran" in each}
    assert {"write csv", "SQL", "names: whole texts", "saveAsTextFile"} <= ran
    assert quote("${env.OWNERS_VARIABLE}").encode() in heard


def test_a_configuration_that_a_script_makes_has_values_for_its_defaults(function: LambdaEmulator) -> None:
    """With it the script checks whether a folder exists; Hadoop keeps that connection, and Spark's write uses it."""
    result = run(function, "by_itself")
    assert result.state == "SUCCESS", result.state_details.replace("\n", "|")
