from __future__ import annotations

import pytest

from handler.redact import LineRedactor, Redactor, redact

SECRETS = [
    ("key=AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("ASIAIOSFODNN7EXAMPLE is temporary", "ASIAIOSFODNN7EXAMPLE"),
    ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    ("aws_secret_access_key = wJalr/short+value", "wJalr/short"),
    ("IQoJb3JpZ2luX2VjE" + "A1b2" * 20, "IQoJb3JpZ2luX2VjE"),
    ("password=hunter22", "hunter22"),
    ("db.password: hunter22", "hunter22"),
    ('{"password": "hunter 22", "user": "x"}', "hunter 22"),
    ("{'dbPassword': 'hunter22'}", "hunter22"),
    ('{\\"password\\": \\"hunter22\\"}', "hunter22"),
    ("--password hunter22", "hunter22"),
    ("--db-password=hunter22", "hunter22"),
    ("Authorization: Bearer abcdefgh12345", "abcdefgh12345"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("jdbc:postgresql://user:hunter22@host/db", "hunter22"),
    ("https://bucket/x?X-Amz-Signature=0123abcd&X-Amz-Credential=AKIA%2F1", "0123abcd"),
    ("api_key: zzz-123", "zzz-123"),
    ("spark.hadoop.fs.s3a.secret.key=abc123", "abc123"),
    ("token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", "eyJhbGci"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", "eyJhbGci"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_"),
    ("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----", "MIIB"),
    ("-----BEGIN EC PRIVATE KEY-----\nMIIB and cut", "MIIB"),
]
HARMLESS = [
    "clientToken: nightly-2026-11-20",
    '{"clientToken": "nightly"}',
    "s3a://lake/accommodations/_delta_log/00000000000000000007.json",
    "0123456789abcdef0123456789abcdef01234567",
    "/opt/python/lib/python3.11/site-packages/pyspark/sql/session.py",
    "org.apache.spark.sql.delta.DeltaLog$Builder1",
    "the passage takes 3 = three steps",
    "https://example.com/a?b=c",
    "rows=22248",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    """Whatever form it has."""
    assert secret in text
    assert secret not in redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text: str) -> None:
    """A log that is masked too much cannot be read."""
    assert redact(text) == text


@pytest.mark.parametrize(("text", "_secret"), SECRETS)
def test_masking_twice_changes_nothing(text: str, _secret: str) -> None:
    """The mask is not itself a secret."""
    assert redact(redact(text)) == redact(text)


def test_values_of_secret_variables_are_known() -> None:
    """Wherever they appear; other variables' values, and short ones, are not secrets."""
    known = Redactor.of_environment(
        {"DB_PASSWORD": "open sesame", "AWS_SESSION_TOKEN": "tok-tok-tok", "MODE": "production", "PIN_SECRET": "123"}
    )
    assert known("say open sesame, tok-tok-tok in production 123") == "say [redacted], [redacted] in production 123"


def test_arguments_are_masked_as_a_list() -> None:
    """The value that follows a secret option is one element."""
    assert redact.arguments(["--password", "x", "--day", "1", "--token=abc", "plain"]) == (
        "--password",
        "[redacted]",
        "--day",
        "1",
        "--token=[redacted]",
        "plain",
    )


def test_values_of_secret_arguments_are_known_afterwards() -> None:
    """Also where the script prints them in a form of its own."""
    known = Redactor().knowing(["--password", "hunter22", "--api-key=k-77777777"])
    assert known("got hunter22 and k-77777777") == "got [redacted] and [redacted]"


def test_a_private_key_is_masked_line_by_line() -> None:
    """A stream shows one line at a time."""
    lines = LineRedactor(redact)
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nxyz\n-----END RSA PRIVATE KEY-----\nb"
    assert [lines(line) for line in text.split("\n")] == ["a", *["[redacted]"] * 4, "b"]


@pytest.mark.parametrize(
    "text", ["password" * 2000, "a" * 16_000, "=" * 16_000, "{'" * 8_000, "-" * 16_000, "://" * 5000]
)
def test_hostile_lines_are_masked_in_bounded_time(text: str) -> None:
    """No pattern goes back and forth over a long line (the test's own time limit judges)."""
    redact(text)


def test_secrets_that_were_read_are_masked_in_the_forms_in_which_they_are_written() -> None:
    """As they are, in a URL, in JSON, line by line; however short, from four characters on."""
    masked = Redactor().knowing_secrets(["p4$s", 'a "b"\u00e9/', "first line here\nsecond line here\n{"])

    for text in (
        "x p4$s y",
        "x p4%24s y",
        'x a "b"\u00e9/',
        "x a+%22b%22%C3%A9%2F",
        r"x a \"b\"\u00e9/",
        "x second line here",
    ):
        shown = masked(text)
        assert shown.startswith("x ")
        assert "[redacted]" in shown, text
    assert masked("abc {") == "abc {"


def test_references_to_secrets_are_shown() -> None:
    """Where a secret lies is none; what stands beside it is masked as ever."""
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake/db-AbCdEf"

    assert redact(f"SOAL_SECRETS: the secret {arn} could not be read") == (
        f"SOAL_SECRETS: the secret {arn} could not be read"
    )
    assert redact("secret: hunter22") == "secret: [redacted]"
    assert redact("12:secret:hunter22") == "12:secret:[redacted]"
    assert Redactor.of_environment({"SOAL_SECRETS": f'{{"PGPASSWORD":"{arn}"}}'}).known == ()
