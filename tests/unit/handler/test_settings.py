from __future__ import annotations

from pathlib import Path

import pytest

from handler.settings import read_settings
from handler.usage import UsageError
from safewriter.objects import Location

GOOD = {"SW_CHECKPOINT_BUCKET": "checkpoints/prefix"}


def test_defaults() -> None:
    """Only the checkpoint bucket must be set."""
    settings = read_settings(GOOD)
    assert settings.guard.checkpoint_bucket == Location("checkpoints", "prefix")
    assert (settings.errors, settings.jit, settings.script, settings.s3_endpoint) == ("raise", "auto", None, None)
    assert settings.tmp == Path("/tmp")


def test_the_script_of_the_predecessor_s_variables() -> None:
    """SCRIPT_BUCKET may hold a prefix, SPARK_SCRIPT is a key below it."""
    settings = read_settings({**GOOD, "SCRIPT_BUCKET": "s3://scripts/daily/", "SPARK_SCRIPT": "/job.py"})
    assert settings.script == Location("scripts", "daily/job.py")


def test_the_bucket_alone_names_no_script() -> None:
    """SCRIPT_BUCKET without SPARK_SCRIPT is somebody else's variable."""
    assert read_settings({**GOOD, "SCRIPT_BUCKET": "scripts"}).script is None


def test_the_entry_point() -> None:
    """SOAL_ENTRY_POINT is a whole path."""
    assert read_settings({**GOOD, "SOAL_ENTRY_POINT": "s3://scripts/a/b.py"}).script == Location("scripts", "a/b.py")


def test_the_endpoint_of_s3_wins_over_the_general_one() -> None:
    """As in boto3."""
    both = {"AWS_ENDPOINT_URL": "http://general", "AWS_ENDPOINT_URL_S3": "http://s3"}
    assert read_settings({**GOOD, **both}).s3_endpoint == "http://s3"
    assert read_settings({**GOOD, "AWS_ENDPOINT_URL": "http://general"}).s3_endpoint == "http://general"


def test_an_empty_variable_is_not_set() -> None:
    """Templates often leave variables empty."""
    assert read_settings({**GOOD, "SOAL_ERRORS": "", "JAVA_HOME": ""}).errors == "raise"


def test_an_error_names_the_variable() -> None:
    """Also one that SafeWriter finds."""
    with pytest.raises(UsageError, match=r"^SW_AUDIT_LOG: ") as caught:
        read_settings({**GOOD, "SW_AUDIT_LOG": "maybe"})
    assert caught.value.field == "SW_AUDIT_LOG"
