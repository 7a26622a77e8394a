"""A Java process for servers in Java, controlled by this process with Py4J. No other process can control it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from handler.settings import read_settings
from handler.spark.installation import find_java

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from py4j.java_gateway import JVMView


def java_program() -> Path:
    """Return the Java program that a job would use."""
    settings = read_settings({**os.environ, "SW_CHECKPOINT_BUCKET": "none"})
    return find_java(settings.soal_home, settings.java_home)


@contextmanager
def java(class_path: Iterable[Path]) -> Iterator[JVMView]:
    """Start a JVM. It ends with the block, or with this process, even if that is killed."""
    port, token, process = launch_gateway(
        classpath=":".join(map(str, class_path)),
        java_path=str(java_program()),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        enable_auth=True,  # without it, anyone who can reach the port could run programs as this user
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()  # the JVM exits when its input closes
        process.wait()  # not communicate(): a py4j thread reads the output, and may close it
