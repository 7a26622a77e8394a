"""Secrets that are known by value: from variables, arguments, settings and references."""

from __future__ import annotations

import base64
import html
import json
import re
import reprlib
import shlex
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from hypothesis import assume, given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

import pytest

from handler.driver.message import in_one_line
from handler.input_errors import InputError, described
from handler.redaction.effort import WITHHELD, Effort
from handler.redaction.redact import Redactor, redact
from safewriter.bounds import shortened


def test_values_of_secret_variables_are_known() -> None:
    """They are masked wherever they appear; other variables' values, and short ones, are not secrets."""
    known = Redactor.of_environment(
        {"DB_PASSWORD": "open sesame", "AWS_SESSION_TOKEN": "tok-tok-tok", "MODE": "production", "PIN_SECRET": "123"}
    )
    assert known("say open sesame, tok-tok-tok in production 123") == "say [redacted], [redacted] in production 123"


def test_values_of_secret_arguments_are_known_afterwards() -> None:
    """They are masked even if the script prints them in another form."""
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
    """This holds without an option, inside JSON, and for a value that begins like an option."""
    assert Redactor().knowing(arguments)("connected with open sesame") == "connected with [redacted]"


def test_long_arguments_push_nothing_out_that_was_known_before() -> None:
    """There is a bound on the letters of all forms, and what was known first stays."""
    known = Redactor.of_environment({"DB_PASSWORD": "open sesame"})
    for kind in "abcd":
        lines = "\n".join(f"line {kind} {index:04}" for index in range(4500))
        known = known.knowing([f"--password={lines}"])
    assert known("open sesame, line d 0042, line d 4242") == "[redacted], [redacted], [redacted]"
    full = known.knowing([f"--token={index:05}{'x' * 60_000}" for index in range(30)])
    assert 4_000_000 < sum(map(len, full.known)) <= 4_194_304
    assert full("open sesame, line a 0042") == "[redacted], [redacted]"


@pytest.mark.parametrize("value", ["default", "us-east-1", "eu-central-1", "2024-01", "2026-11-22", "Production"])
def test_a_value_that_occurs_in_every_log_is_not_known(value: str) -> None:
    """It is still masked beside its name."""
    known = Redactor.of_environment({"DB_PASSWORD": value}).knowing(["--token", value]).knowing_secrets([value])
    assert known(f"read {value} of {value}/x") == f"read {value} of {value}/x"
    assert known(f"password={value}") == "password=[redacted]"


def test_a_known_word_is_masked_as_a_word() -> None:
    """A password that is a word does not mask longer words; any other value is masked everywhere."""
    known = Redactor.of_environment({"DB_PASSWORD": "postgres", "DB_PASS": "hunter22"})
    assert known("jdbc:postgresql://h/postgres") == "jdbc:postgresql://h/[redacted]"
    assert known(r"a_postgres9 %3Apostgres \npostgres") == r"a_[redacted]9 %3A[redacted] \n[redacted]"
    assert known("xhunter22x") == "x[redacted]x"


@pytest.mark.parametrize("arguments", [["--token-column", "e"], ["--password", "e"], ["--token", "--day", "e"]])
def test_no_argument_makes_a_log_unreadable(arguments: list[str]) -> None:
    """A column's name is not a secret, and a single letter is in every line."""
    assert Redactor().knowing(arguments)("the rest of the text") == "the rest of the text"


def test_values_of_secret_settings_are_known_afterwards() -> None:
    """This covers a job's conf, and URLs with a password in variables."""
    conf = {"spark.hadoop.fs.s3a.bucket.x.secret.key": "hunter22", "spark.app.name": "nightly"}
    known = Redactor.of_environment({"DATABASE_URL": "postgres://me:open-sesame@db/x"}).knowing_settings(conf)
    assert known("hunter22 of nightly, open-sesame, open%2Dsesame") == "[redacted] of nightly, [redacted], [redacted]"


def test_secrets_that_were_read_are_masked_in_the_forms_in_which_they_are_written() -> None:
    """The forms are plain, in a URL, in JSON, and line by line; from four characters on."""
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
    """A secret's location is not a secret; a value beside it is masked as usual."""
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake/db-AbCdEf"

    assert redact(f"SOAL_SECRETS: the secret {arn} could not be read") == (
        f"SOAL_SECRETS: the secret {arn} could not be read"
    )
    assert redact("secret: hunter22") == "secret: [redacted]"
    assert redact("12:secret:hunter22") == "12:secret:[redacted]"
    assert Redactor.of_environment({"SOAL_SECRETS": f'{{"PGPASSWORD":"{arn}"}}'}).known == ()


def test_a_known_secret_is_found_in_a_url() -> None:
    """There its slashes are encoded, too."""
    assert Redactor().knowing_secrets(["ab/cd ef"])("u=ab%2Fcd%20ef") == "u=[redacted]"


def test_the_longest_known_secret_goes_first() -> None:
    """No remainder is left if one secret is the beginning of another."""
    assert Redactor().knowing_secrets(["horse", "horse battery"])("a horse battery b") == "a [redacted] b"


def test_a_secret_of_blanks_does_not_mask_its_letter() -> None:
    """The rest without the blanks is too short."""
    assert Redactor().knowing_secrets(["   a   "])("banana") == "banana"


@pytest.mark.parametrize("before", range(1440, 1500, 7))
def test_half_of_a_known_value_in_a_java_message_is_masked(before: int) -> None:
    """The driver truncates such a message before the handler masks it, and a value may contain blanks."""
    secret = "correct horse battery staple lamp"
    told = in_one_line(f"{'x' * before} {secret}\n\tat a.B.c(D.java:1)\nCaused by: b.F: no\n\tat a.B.c(D.java:1)\n")
    masked = Redactor().knowing_secrets([secret])(told)
    assert masked.endswith("root cause: b.F: no")
    assert not any(word in masked for word in ("correct", "horse", "battery", "staple"))


@pytest.mark.parametrize("problem", [f"must be a list, not {described('Zq9-' * 30)}", "y" * 960 + " " + "Zq9-" * 30])
def test_half_of_a_known_value_in_a_usage_error_is_masked(problem: str) -> None:
    """The error shows the beginning of a bad field before any secret is known."""
    assert "Zq9-" in str(InputError("field", problem))
    masked = Redactor().knowing_secrets(["Zq9-" * 30])(str(InputError("field", problem)))
    assert "Zq9" not in masked
    assert masked.endswith("[redacted]…")


def test_other_text_before_a_mark_of_a_cut_stays() -> None:
    """This holds even if it begins like a known value."""
    known = Redactor().knowing_secrets(["open sesame"])
    assert known("open question… and an open door…") == "open question… and an open door…"


ENCODERS: dict[str, Callable[[str], str]] = {
    "repr": repr,
    "list": lambda text: str([text]),
    "bytes": lambda text: repr(text.encode()),
    "url": lambda text: quote(text, safe=""),
    "url, slashes kept": quote,
    "url, lower case": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text)),
    "form": quote_plus,
    "java.net.URLEncoder": lambda text: quote_plus(text, safe="*").replace("~", "%7E"),
    "java.net.URI": lambda text: quote(text, safe="!$&'()*+,;=:@/~"),
    "requests": lambda text: quote(text, safe="!#$%&'()*+,/:;=?@[]~"),
    "url in a url": lambda text: quote(quote(text, safe=""), safe=""),
    "url in json in json": lambda text: json.dumps(json.dumps(quote(text, safe="'"))),
    "html by numbers": lambda text: "".join(one if one.isalnum() else f"&#{ord(one)};" for one in text),
    "html by hex": lambda text: "".join(one if one.isalnum() else f"&#x{ord(one):X};" for one in text),
    "java": lambda text: "".join(one if one.isalnum() else f"\\u{ord(one):04X}" for one in text),
    "yaml": lambda text: "".join(one if one.isalnum() else f"\\x{ord(one):02X}" for one in text),
    "octal": lambda text: "".join(one if one.isalnum() else f"\\{ord(one):03o}" for one in text),
    "sql with backslashes": lambda text: text.replace("\\", "\\\\").replace("'", "''"),
    "re.escape and printf %q": re.escape,
    "html": html.escape,
    "html without quotes": lambda text: html.escape(text, quote=False),
    "xml": lambda text: html.escape(text).replace("&#x27;", "&apos;"),
    "sql": lambda text: text.replace("'", "''"),
    "csv": lambda text: text.replace('"', '""'),
    "shell": shlex.quote,
    "json": json.dumps,
    "json of other letters": lambda text: json.dumps(text, ensure_ascii=False),
    "json with escaped slashes": lambda text: json.dumps(text).replace("/", r"\/"),
    "gson": lambda text: "".join(f"\\u{ord(one):04x}" if one in "<>&='" else one for one in json.dumps(text)),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind a name": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(f"u:{text}".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "a column of show()": lambda text: f"|{text[:17]}...|",
    "reprlib": reprlib.repr,
}
LETTERS = st.characters(min_codepoint=33, max_codepoint=126)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
@given(secret=st.text(LETTERS, min_size=20, max_size=60))
def test_no_ordinary_encoder_hides_a_known_value(name: str, secret: str) -> None:
    """Whatever encodes it, and wherever, no eight letters of the encoded text remain.

    Of backslashes at its end, which an encoder doubles, some may remain: they tell nothing of it.
    """
    assume(".." not in secret and not secret.endswith("\\\\"))
    if name == "reprlib":
        secret = re.sub(r"[%&\\]", "-", secret)  # it may cut in the middle of what looks like an escape
    written = ENCODERS[name](secret)
    shown = Redactor().knowing_secrets([secret])(f"value {written} end")
    assert "[redacted]" in shown
    left = {shown[at : at + 8] for at in range(len(shown) - 7)}
    core = written.strip("|'\"[]b")[4:-4]
    assert not any(core[at : at + 8] in left for at in range(len(core) - 7))


def test_values_that_overlap_leave_no_part() -> None:
    """At each position the longest value counts, and a value that begins inside another is masked to its end."""
    known = Redactor().knowing_secrets(["abcdefgh12", "gh12345678", "abcd"])
    assert known("x abcdefgh12345678 abcdx") == "x [redacted] abcdx"
    assert known("abcd") == "[redacted]"


def test_the_password_of_a_url_is_known_as_it_is_typed() -> None:
    """The variable has it URL-encoded."""
    known = Redactor.of_environment({"DB_URL": "postgresql://u:p%40ss-wd77@h/db"})
    assert known("tried p@ss-wd77, p%40ss-wd77") == "tried [redacted], [redacted]"


def test_a_metric_has_no_known_value_in_its_names() -> None:
    """CloudWatch's own fields refer to the members by their masked names."""
    directive = {"Namespace": "jobs", "Dimensions": [["source_open sesame"]], "Metrics": [{"Name": "rows"}]}
    document = {"_aws": {"CloudWatchMetrics": [directive]}, "source_open sesame": "x", "rows": 1}
    masked = Redactor().knowing_secrets(["open sesame"]).metric(document)
    assert masked == {
        "_aws": {"CloudWatchMetrics": [{**directive, "Dimensions": [["source_[redacted]"]]}]},
        "source_[redacted]": "x",
        "rows": 1,
    }


WAYS: tuple[Callable[[str], str], ...] = (
    lambda one: one,
    lambda one: quote(one, safe=""),
    lambda one: "".join(f"%{byte:02x}" for byte in one.encode()),
    lambda one: "".join(f"\\x{byte:02X}" for byte in one.encode()),
    lambda one: "".join(f"\\{byte:03o}" for byte in one.encode()),
    lambda one: f"%{ord(one):02X}" if ord(one) < 256 else one,
    lambda one: f"&#{ord(one)};",
    lambda one: f"&#X{ord(one):x};",
    html.escape,
    lambda one: json.dumps(one)[1:-1],
    lambda one: f"\\U{ord(one):08x}",
)


@pytest.mark.parametrize("secret", ["ünïcödé-paß", "пароль-дня", "密码是这个吗", "🔑🔑🔑🔑-x"])
@pytest.mark.parametrize("escape", ["\\{:03o}", "\\\\{:03o}", "\\x{:02x}", "%{:02X}", "\\%{:02X}"])
def test_a_letter_whose_bytes_are_escaped_one_by_one_is_one_letter(secret: str, escape: str) -> None:
    """A shell writes `%q` that way in the locale C."""
    written = "".join(one if one.isascii() else "".join(map(escape.format, one.encode())) for one in secret)
    assert Redactor().knowing_secrets([secret])(f"tried $'{written}' end") == "tried $'[redacted]' end"


ANY_LETTER = st.characters(min_codepoint=33, exclude_categories=["Cs"])


@given(st.lists(st.tuples(ANY_LETTER, st.sampled_from(WAYS)), min_size=8, max_size=40))
def test_each_letter_of_a_known_value_may_be_escaped_in_a_way_of_its_own(letters: list[tuple[str, object]]) -> None:
    """Even an unknown encoder leaves no letter that another one would escape."""
    secret = "".join(letter for letter, _ in letters).replace("\\", "/")
    assume(all(mark not in secret for mark in "%&"))
    assume(not re.search("[\xc2-\xf4][\x80-\xbf]", secret))  # in Latin-1 their bytes are those of one letter in UTF-8
    written = "".join(way("/" if letter == "\\" else letter) for letter, way in letters)  # type: ignore[operator]
    assert Redactor().knowing_secrets([f"Zebra{secret}9x"])(f"k=Zebra{written}9x end") == "k=[redacted] end"


TOKEN = base64.b64encode(bytes(index * 37 % 251 for index in range(537))).decode().rstrip("=")


@pytest.mark.parametrize(
    "written",
    [
        base64.b64encode(TOKEN.encode()).decode(),
        base64.b64encode(f"user:{TOKEN}".encode()).decode(),
        base64.encodebytes(f"user:{TOKEN}".encode()).decode(),
        repr(base64.encodebytes(TOKEN.encode())),
        quote(base64.b64encode(TOKEN.encode())),
        TOKEN.encode().hex(),
        TOKEN.encode().hex().upper(),
        "\n".join(TOKEN[at : at + 40] for at in range(0, len(TOKEN), 40)),
    ],
)
def test_a_long_token_is_found_in_base64_and_hex_also_line_by_line(written: str) -> None:
    """An AWS session token has more than 700 letters, and Base64 may be folded anywhere."""
    known = Redactor.of_environment({"AWS_SESSION_TOKEN": TOKEN})
    shown = "\n".join(known(f"INFO {line}") for line in written.splitlines())
    left = {shown[at : at + 20] for at in range(len(shown) - 19)}
    assert "[redacted]" in shown
    assert not any(written[at : at + 20] in left for at in range(len(written) - 19))


@pytest.mark.parametrize("mark", ["…", "...", " ...", "[...]", "..", " [..]", "[…]", "\N{REPLACEMENT CHARACTER}"])
@pytest.mark.parametrize("half", ["open%20sesa", "open sesam", "open%20se%7", "open&#32;sesa&#1"])
def test_the_beginning_of_a_known_value_before_any_mark_of_a_cut_is_masked(half: str, mark: str) -> None:
    """This holds even if the truncation splits an escape."""
    shown = Redactor().knowing_secrets(["open sesame, said the thief"])(f"x {half}{mark}")
    assert shown.startswith("x [redacted]")
    assert "se" not in shown.removeprefix("x [redacted]")


@pytest.mark.parametrize("shift", range(0, 40, 3))
def test_the_end_of_a_value_with_blanks_behind_a_left_out_middle_is_masked(shift: int) -> None:
    """A long message keeps its beginning and its last words."""
    secret = "correct horse battery staple wagon"
    message = f"{'x' * 5000} {secret} {'y ' * ((2000 - shift) // 2)}"
    shown = Redactor().knowing_secrets([secret])(shortened(message))
    assert not any(word in shown for word in ("horse", "battery", "staple", "wagon"))
    assert shown.endswith(" y y ")


def test_the_longest_end_of_any_value_behind_a_left_out_middle_is_masked() -> None:
    """A shorter end of another value leaves half of a secret."""
    known = Redactor().knowing_secrets(["a long pass", "my long password1"])
    assert known("foo … (1,234 letters) password1 bar") == "foo … (1,234 letters) [redacted] bar"


@pytest.mark.parametrize(
    "unit", ["IQoJ…", "IQoJb3JpZ2lu...", '{"ty…{"ty', "IQoJb3JpZ2luX2VjE", "%25", "\\\\", "&#37;", "''"]
)
def test_a_line_made_of_beginnings_of_a_known_value_is_searched_in_bounded_time(unit: str) -> None:
    """The beginning of session tokens is public (the test's own time limit decides)."""
    known = Redactor.of_environment({"AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjE" + TOKEN})
    known = known.knowing_secrets(['{"type": "' + "a\\n" * 20_000 + '"}'])
    known(unit * (250_000 // len(unit)))


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (["a" * 260 + str(number) for number in range(75)], ("a" * 250 + "…") * 20),
        (["a" * 65_000], "a" * 60_000),
        ([f"line {number:05}" for number in range(2_000)], "line ?\n" * 500),
        (["A1b2" * 10], ("x" * 30 + "\n") * 1_500),
        (["hunter22"], "\\n" * 1_500),
        ([], "(p.pwd,arn:" * 1_500),
    ],
)
def test_a_text_that_takes_too_long_is_withheld_within_its_share(known: list[str], text: str) -> None:
    """The search itself looks at the time, at each of its steps, whatever makes them many; the next text is shown."""
    clock = count()
    redactor = Redactor(tuple(known), Effort(10_000, lambda: next(clock)))
    assert redactor(text) == WITHHELD
    assert next(clock) <= 1_005
    assert redactor("an ordinary text") == "an ordinary text"


def test_an_argument_that_takes_too_long_is_told_and_masked_as_a_whole() -> None:
    """Nobody knows what it holds; the other arguments are searched, and later ones do not make good for it."""
    clock = count()
    slow = "(p.pwd,arn:" * 1_500
    known = Redactor(effort=Effort(cpu=lambda: next(clock) / 1_000)).knowing([slow, "x:password=hunter22"])
    assert next(clock) <= 1_000
    assert not known.knowing_settings({"a": "b"}).is_complete
    assert replace(known, effort=Effort())(f"got {slow} and hunter22") == "got [redacted] and [redacted]"


def test_a_redactor_that_knows_more_has_the_time_that_is_left() -> None:
    """A run has one amount of it."""
    clock = count()
    first = Redactor(("hunter22",), Effort(39, lambda: next(clock)))
    assert first("x hunter22") == "x [redacted]"
    assert first.knowing_secrets(["open sesame"])("hunter22, open sesame") == WITHHELD


@pytest.mark.parametrize(
    "secret",
    [
        '{"username": "etl", "password": "Tr0ub4dor&3xyz", "engine": "postgres", "port": 5432}',
        "postgresql://etl:Tr0ub4dor&3xyz@db.example/lake",
        "etl:Tr0ub4dor&3xyz",
    ],
    ids=["JSON", "URL", "pair"],
)
def test_the_password_within_a_secret_is_masked_alone(secret: str) -> None:
    """Secrets Manager's own form for a database is JSON; an error shows only its password. Other members stay."""
    known = Redactor().knowing_secrets([secret])
    assert known("the server refused Tr0ub4dor&3xyz of postgres") == "the server refused [redacted] of postgres"
