"""The handler validates the function's own environment variables: defaults, places, the owner's Spark settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handler.input_errors import InputError
from handler.settings import read_settings
from handler.spark_settings.checked import Permit
from safewriter.objects import Location

GOOD = {"SW_CHECKPOINT_BUCKET": "checkpoints/prefix"}


def test_defaults() -> None:
    """Only the checkpoint bucket is required."""
    settings = read_settings(GOOD)
    assert settings.guard.checkpoint_bucket == Location("checkpoints", "prefix")
    assert (settings.errors, settings.jit, settings.script, settings.s3_endpoint) == ("raise", "auto", None, None)
    assert settings.tmp == Path("/tmp")


def test_the_script_of_the_predecessor_s_variables() -> None:
    """SCRIPT_BUCKET may hold a prefix, and SPARK_SCRIPT is a key below it."""
    settings = read_settings({**GOOD, "SCRIPT_BUCKET": "s3://scripts/daily/", "SPARK_SCRIPT": "/job.py"})
    assert settings.script == Location("scripts", "daily/job.py")


def test_the_bucket_alone_names_no_script() -> None:
    """SCRIPT_BUCKET without SPARK_SCRIPT is the place of the scripts that events name."""
    settings = read_settings({**GOOD, "SCRIPT_BUCKET": "scripts/daily"})
    assert (settings.script, settings.script_folder) == (None, Location("scripts", "daily"))


def test_settings_and_permits_of_the_owner() -> None:
    """SOAL_CONF is a JSON object, SOAL_CONF_ALLOW has words separated by blanks or line ends."""
    settings = read_settings(
        {**GOOD, "SOAL_CONF": '{"spark.app.name": "x"}', "SOAL_CONF_ALLOW": "spark.a.*\n spark.b=https://c/?d=e*"}
    )
    assert settings.conf == {"spark.app.name": "x"}
    assert settings.conf_allow == (Permit("spark.a.*"), Permit("spark.b", "https://c/?d=e*"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("SOAL_CONF", "spark.app.name=x", "must be a JSON object"),
        ("SOAL_CONF", "[" * 100_000, "must be a JSON object"),
        ("SOAL_CONF", '["spark.app.name"]', "must be an object of strings"),
        ("SOAL_CONF", '{"spark.app.name": 1}', "must be a string"),
        ("SOAL_CONF", '{"spark.master": "yarn"}', "may not be set by a job"),
        ("SOAL_CONF", '{"spark.app.name": "${env.HOME}"}', "holds ${"),
        ("SOAL_CONF_ALLOW", "fs.s3a.*", "begins with 'spark.'"),
        ("SCRIPT_BUCKET", "Not_A_Bucket", "no valid bucket name"),
    ],
)
def test_a_bad_setting_of_the_owner_is_refused(name: str, value: str, problem: str) -> None:
    """The error names the variable, before any event is read."""
    with pytest.raises(InputError, match=re.escape(problem)) as caught:
        read_settings({**GOOD, name: value})
    assert caught.value.field.startswith(name)


def test_the_entry_point() -> None:
    """SOAL_ENTRY_POINT is a whole path."""
    assert read_settings({**GOOD, "SOAL_ENTRY_POINT": "s3://scripts/a/b.py"}).script == Location("scripts", "a/b.py")


def test_the_endpoint_of_s3_wins_over_the_general_one() -> None:
    """boto3 ranks the two variables this way, and handler and job must use the same S3."""
    both = {"AWS_ENDPOINT_URL": "http://general", "AWS_ENDPOINT_URL_S3": "http://s3"}
    assert read_settings({**GOOD, **both}).s3_endpoint == "http://s3"
    assert read_settings({**GOOD, "AWS_ENDPOINT_URL": "http://general"}).s3_endpoint == "http://general"


def test_an_empty_variable_is_not_set() -> None:
    """Templates often leave variables empty."""
    assert read_settings({**GOOD, "SOAL_ERRORS": "", "JAVA_HOME": ""}).errors == "raise"


def test_an_error_names_the_variable() -> None:
    """This includes a variable that SafeWriter checks."""
    with pytest.raises(InputError, match=r"^SW_AUDIT_LOG: ") as caught:
        read_settings({**GOOD, "SW_AUDIT_LOG": "maybe"})
    assert caught.value.field == "SW_AUDIT_LOG"
