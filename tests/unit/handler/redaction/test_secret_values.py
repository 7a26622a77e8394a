"""The secrets within a secret are known by themselves, whatever letters they have."""

from __future__ import annotations

import json

import pytest

from handler.redaction.redact import Redactor
from handler.redaction.secret_values import secrets_within

HARD = 'k7Q"vM2-tR9x,L&w;b \\"z'


@pytest.mark.parametrize(
    "secret",
    [
        json.dumps({"username": "etl", "password": HARD}),
        json.dumps({"databases": [{"user": "etl", "password": HARD}]}),
        json.dumps({"passwords": ["short-one", HARD]}),
        json.dumps({"passwords": {"production": HARD}}),
        f"user=etl\npassword={HARD}\n",
        f"user: etl\npassword: '{HARD}'\n",
    ],
    ids=["object", "below a list", "list", "object of passwords", "properties", "quoted"],
)
def test_a_password_within_a_secret_is_masked_alone(secret: str) -> None:
    """A driver's message has it without the name beside it."""
    for redactor in (Redactor().knowing_secrets([secret]), Redactor().knowing_settings({"DB_SECRET": secret})):
        assert HARD not in redactor(f"login failed for etl/{HARD}")
        assert "etl" in redactor("login failed for etl")


@pytest.mark.parametrize("secret", ["client:k7Qv:M2t/R9x", "client:/k7Qv:M2t/R9x"])
def test_the_first_colon_ends_the_id_of_a_pair(secret: str) -> None:
    """Iceberg reads a credential so; a URL is no pair."""
    assert secret.partition(":")[2] in set(secrets_within(secret))
    assert "//lake/t" not in set(secrets_within("s3://lake/t"))


@pytest.mark.parametrize("secret", ["etl:k7QvM2tR9x\n", '{"url": "https:\\/\\/etl:k7QvM2tR9x@host\\/db"}'])
def test_a_pair_and_a_url_are_read_through_line_ends_and_escapes(secret: str) -> None:
    """Both are as a command line or an editor has stored them."""
    assert "k7QvM2tR9x" in set(secrets_within(secret))


def test_what_stands_beside_a_password_in_an_object_is_no_secret() -> None:
    """A host in each line of a log helps whoever reads it."""
    found = set(secrets_within(json.dumps({"secret": {"host": "db.example.org", "password": HARD}})))
    assert HARD in found
    assert "db.example.org" not in found


def test_json_without_end_is_not_read() -> None:
    """Nor is it an error: its forms are searched, as in any text."""
    assert list(secrets_within("[" * 100_000)) == ["[" * 100_000]
