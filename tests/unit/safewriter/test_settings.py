"""SafeWriter's settings from environment or arguments: checkpoint bucket, lead time, audit log, named errors."""

from __future__ import annotations

import pytest

from safewriter.errors import SettingError
from safewriter.objects import Location
from safewriter.settings import Settings


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("bucket", Location("bucket")),
        ("bucket/", Location("bucket")),
        ("bucket/deep/prefix/", Location("bucket", "deep/prefix")),
        ("s3://bucket/prefix", Location("bucket", "prefix")),
        ("s3a://bucket", Location("bucket")),
    ],
)
def test_the_checkpoint_bucket_may_have_a_prefix(text: str, location: Location) -> None:
    """A bucket, a bucket with a prefix, and either as a URI are understood."""
    assert Settings.from_environment({"SW_CHECKPOINT_BUCKET": text}).checkpoint_bucket == location


@pytest.mark.parametrize("text", ["", "B", "UPPER", "my_bucket", "http://bucket", "/prefix"])
def test_a_bad_bucket_is_an_error_that_names_the_variable(text: str) -> None:
    """A name that cannot be a bucket is refused before anything is written."""
    with pytest.raises(SettingError, match="SW_CHECKPOINT_BUCKET"):
        Settings.from_environment({"SW_CHECKPOINT_BUCKET": text})


def test_the_bucket_is_required() -> None:
    """Without a place for checkpoints there is no guard."""
    with pytest.raises(SettingError, match="SW_CHECKPOINT_BUCKET: is not set"):
        Settings.from_environment({})


def test_the_rest_has_defaults() -> None:
    """A lead of thirty seconds, and the audit log is on."""
    found = Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket"})

    assert (found.warn_before_ms, found.audit_log) == (30_000, True)


def test_arguments_win() -> None:
    """An explicit argument wins over the environment."""
    environment = {"SW_CHECKPOINT_BUCKET": "environment", "SW_WARN_BEFORE_MS": "7"}

    found = Settings.from_environment(environment, checkpoint_bucket="argument/p", warn_before_ms=9)

    assert found == Settings(Location("argument", "p"), 9)


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1.5"])
def test_a_bad_lead_is_an_error_that_names_the_variable(text: str) -> None:
    """No lead at all would leave no time to settle; zero is refused, not taken for unset."""
    with pytest.raises(SettingError, match="SW_WARN_BEFORE_MS"):
        Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket", "SW_WARN_BEFORE_MS": text})


@pytest.mark.parametrize("given", [0, -1])
def test_a_bad_lead_as_an_argument_is_refused(given: int) -> None:
    """An argument is checked as the variable is."""
    with pytest.raises(SettingError):
        Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket"}, warn_before_ms=given)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), (" yes ", True), ("1", True), ("false", False), ("no", False), ("0", False)],
)
def test_the_audit_log_is_a_boolean(text: str, value: object) -> None:
    """The usual spellings of yes and no are understood."""
    found = Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket", "SW_AUDIT_LOG": text})

    assert found.audit_log is value


@pytest.mark.parametrize("text", ["", "maybe", "2", "off"])
def test_any_other_word_for_the_audit_log_is_an_error(text: str) -> None:
    """A word that is neither yes nor no names its variable."""
    with pytest.raises(SettingError, match="SW_AUDIT_LOG"):
        Settings.from_environment({"SW_CHECKPOINT_BUCKET": "bucket", "SW_AUDIT_LOG": text})


def test_the_shortest_warning_is_a_millisecond() -> None:
    """Only zero is refused."""
    environment = {"SW_CHECKPOINT_BUCKET": "bucket", "SW_WARN_BEFORE_MS": "1"}

    assert Settings.from_environment(environment).warn_before_ms == 1
