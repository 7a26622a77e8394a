"""Secrets that are known by their value: of variables, arguments, settings and references."""

from __future__ import annotations

import pytest

from handler.driver.java_trace import in_one_line
from handler.input_errors import InputError, found
from handler.redaction.redact import Redactor, redact


def test_values_of_secret_variables_are_known() -> None:
    """Wherever they appear; other variables' values, and short ones, are not secrets."""
    known = Redactor.of_environment(
        {"DB_PASSWORD": "open sesame", "AWS_SESSION_TOKEN": "tok-tok-tok", "MODE": "production", "PIN_SECRET": "123"}
    )
    assert known("say open sesame, tok-tok-tok in production 123") == "say [redacted], [redacted] in production 123"


def test_values_of_secret_arguments_are_known_afterwards() -> None:
    """Also where the script prints them in a form of its own."""
    known = Redactor().knowing(["--password", "hunter22", "--api-key=k-77777777", "--day", "2026-11-22"])
    assert known("got hunter22 and k-77777777") == "got [redacted] and [redacted]"
    assert known("day 2026-11-22") == "day 2026-11-22"


@pytest.mark.parametrize(
    "arguments",
    [
        ["password=open sesame"],
        ['{"password":"open sesame"}'],
        ["x", "postgres://me:open sesame@h", "password='open sesame'"],
        ["--db-password", "-open sesame"],
        ["--conf", "spark.x.password=open sesame"],
        ["--conf", '{"password":"open sesame"}'],
    ],
)
def test_a_secret_in_any_argument_is_known(arguments: list[str]) -> None:
    """Also without an option, inside of JSON, and where it begins as an option does."""
    assert Redactor().knowing(arguments)("connected with open sesame") == "connected with [redacted]"


def test_long_arguments_make_no_line_slow() -> None:
    """Each known value is looked for in each line: there is a bound, and what was known first stays."""
    lines = ["\n".join(f"line {kind} {index:04}" for index in range(4500)) for kind in "abcdefgh"]
    known = Redactor.of_environment({"DB_PASSWORD": "open sesame"}).knowing(f"--password={text}" for text in lines[:4])

    assert len(known.known) < 900
    assert known("open sesame, line d 0042") == "[redacted], [redacted]"
    assert known.knowing(["--token=another one"])("another one") == "[redacted]"
    full = known.knowing(f"--password={text}" for text in lines)
    assert len(full.known) == 1000
    assert full("open sesame") == "[redacted]"


def test_a_known_word_is_masked_as_a_word() -> None:
    """A password that is a word leaves the longer ones; any other value is masked wherever it stands."""
    known = Redactor.of_environment({"DB_PASSWORD": "postgres", "DB_PASS": "hunter22"})
    assert known("jdbc:postgresql://h/postgres") == "jdbc:postgresql://h/[redacted]"
    assert known(r"a_postgres9 %3Apostgres \npostgres") == r"a_[redacted]9 %3A[redacted] \n[redacted]"
    assert known("xhunter22x") == "x[redacted]x"


@pytest.mark.parametrize("arguments", [["--token-column", "e"], ["--password", "e"], ["--token", "--day", "e"]])
def test_no_argument_makes_a_log_unreadable(arguments: list[str]) -> None:
    """The name of a column is no secret, and a single letter stands in every line."""
    assert Redactor().knowing(arguments)("the rest of the text") == "the rest of the text"


def test_values_of_secret_settings_are_known_afterwards() -> None:
    """Of a job's conf, and of URLs with a password among the variables."""
    conf = {"spark.hadoop.fs.s3a.bucket.x.secret.key": "hunter22", "spark.app.name": "nightly"}
    known = Redactor.of_environment({"DATABASE_URL": "postgres://me:open-sesame@db/x"}).knowing_settings(conf)
    assert known("hunter22 of nightly, open-sesame, open%2Dsesame") == (
        "[redacted] of nightly, [redacted], open%2Dsesame"
    )


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


def test_a_known_secret_is_found_in_a_url() -> None:
    """Its slashes are encoded there, too."""
    assert Redactor().knowing_secrets(["ab/cd ef"])("u=ab%2Fcd%20ef") == "u=[redacted]"


def test_the_longest_known_secret_goes_first() -> None:
    """One that begins another leaves no rest of it."""
    assert Redactor().knowing_secrets(["horse", "horse battery"])("a horse battery b") == "a [redacted] b"


def test_a_secret_of_blanks_does_not_mask_its_letter() -> None:
    """What is left without the blanks is too short."""
    assert Redactor().knowing_secrets(["   a   "])("banana") == "banana"


@pytest.mark.parametrize("before", range(1440, 1500, 7))
def test_half_of_a_known_value_in_a_java_message_is_masked(before: int) -> None:
    """The driver cuts such a message before the handler masks it, and a value may have blanks."""
    secret = "correct horse battery staple lamp"
    told = in_one_line(f"{'x' * before} {secret}\n\tat a.B.c(D.java:1)\nCaused by: b.F: no\n\tat a.B.c(D.java:1)\n")
    masked = Redactor().knowing_secrets([secret])(told)
    assert masked.endswith("root cause: b.F: no")
    assert not any(word in masked for word in ("correct", "horse", "battery", "staple"))


@pytest.mark.parametrize("problem", [f"must be a list, not {found('Zq9-' * 30)}", "y" * 960 + " " + "Zq9-" * 30])
def test_half_of_a_known_value_in_a_usage_error_is_masked(problem: str) -> None:
    """A bad field is shown in its beginning, before any secret is known."""
    assert "Zq9-" in str(InputError("field", problem))
    masked = Redactor().knowing_secrets(["Zq9-" * 30])(str(InputError("field", problem)))
    assert "Zq9" not in masked
    assert masked.endswith("[redacted]…")


def test_other_text_before_a_mark_of_a_cut_stays() -> None:
    """Also where it begins as a known value does."""
    known = Redactor().knowing_secrets(["open sesame"])
    assert known("open question… and an open door…") == "open question… and an open door…"
