"""The driver's warm-up prepares the guard on a thread while the JVM creates the first Spark context."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

BEGIN = """
import sys, threading
from pyspark.core.context import SparkContext
from handler.driver import guard_warm_up
from safewriter.block import warmup

SparkContext._initialize_context = lambda context, jconf: f"context of {jconf}"
one = guard_warm_up.GuardWarmUp()
"""


def run(text: str) -> list[str]:
    """Run code in a separate process, since it patches PySpark."""
    done = subprocess.run([sys.executable, "-c", BEGIN + text], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_it_begins_with_the_first_context() -> None:
    """Any earlier, the script's own calls to the JVM would wait for Python's lock."""
    assert run(
        "begun = []\n"
        "warmup.warm_up = lambda: begun.append(1)\n"
        "one.install()\n"
        "print(begun)\n"
        "print(SparkContext._initialize_context(None, 'settings'))\n"
        "one.join()\n"
        "print(SparkContext._initialize_context(None, 'others'), begun)\n"
    ) == ["[]", "context of settings", "context of others [1]"]


def test_an_error_is_left_to_the_block() -> None:
    """There the script can see the error."""
    assert run(
        "def fail(): raise ValueError('no bucket')\n"
        "warmup.warm_up = fail\n"
        "threading.excepthook = lambda error: print('seen')\n"
        "one.install()\n"
        "print(SparkContext._initialize_context(None, 'settings'))\n"
        "one.join()\n"
    ) == ["context of settings"]


def test_a_script_without_a_context_waits_for_nothing() -> None:
    """Python may exit at once."""
    assert run("one.install()\none.join()\nprint('end')\n") == ["end"]
