"""The handler masks secrets by their form, by a telling name beside them, and by value, in bounded time."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handler.redaction import secret_forms
from handler.redaction.redact import PrivateKeys, Redactor, redact
from handler.redaction.secret_names import HINT, is_secret

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
    ("spark.sql.catalog.lake.header.Cookie=session=abc123", "abc123"),
    ("oauth2-assertion=abc.123.x", "abc.123"),
    ("token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", "eyJhbGci"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", "eyJhbGci"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123", "ghp_"),
    ("DB_PASS=open-sesame", "open-sesame"),
    ("REDIS_AUTH: s3cr3tvalue", "s3cr3tvalue"),
    ("ENCRYPTION_KEY=0123456789abcdef", "0123456789abcdef"),
    ("pass: hunter22", "hunter22"),
    ("jdbc:oracle:thin:scott/tiger@//db:1521/x", "tiger"),
    ("https://a.blob.core.windows.net/c?sv=2020&sig=abcDEF123456%2Fxyz%3D&se=1", "abcDEF123456"),
    ("[('spark.hadoop.fs.s3a.secret.key', 'x9x9x9')]", "x9x9x9"),
    ('["spark.some.password", "hunter22"]', "hunter22"),
    ("Map(fs.s3a.secret.key -> hunter22, a -> b)", "hunter22"),
    ("<name>fs.s3a.secret.key</name><value>hunter22</value>", "hunter22"),
    ("postgresql://u:p@ss@host/db", "p@ss"),
    ("CREATE USER a IDENTIFIED BY 'hunter22'", "hunter22"),
    (r"url\u003dx\u0026password\u003dhunter22", "hunter22"),
    (r"password\x3dhunter22", "hunter22"),
    ("password&#61;hunter22", "hunter22"),
    ("password&#58;hunter22", "hunter22"),
    ("password%3Ahunter22", "hunter22"),
    ("CREATE USER a IDENTIFIED BY r'hunter22'", "hunter22"),
    ("CREATE USER a IDENTIFIED BY 'it''hunter22'", "hunter22"),
    ("password 'it''hunter22'", "hunter22"),
    ("password 'it' 'hunter22'", "hunter22"),
    ('password "it""hunter22"', "hunter22"),
    ("OPTIONS (url 'x', token 'it''hunter22')", "hunter22"),
    ("OPTIONS (url 'x', token 'it' 'hunter22', a 'b')", "hunter22"),
    ("OPTIONS (url 'x', token R'hunter22')", "hunter22"),
    ("token = 'it''hunter22", "hunter22"),
    ("password = b'hunter22'", "hunter22"),
    ('password = r"it hunter22', "hunter22"),
    ("('password', r'hunter22')", "hunter22"),
    ('"password": "it" "token": "hunter22"', "hunter22"),
    ("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----", "MIIB"),
    ("-----BEGIN EC PRIVATE KEY-----\nMIIB and cut", "MIIB"),
    ("password: 'hunter 22", "22"),
    ('{"password": "hunter 22', "22"),
    ('{\\"password\\": \\"hunter 22', "22"),
    ('--password "hunter 22', "22"),
    ("password := hunter22", "hunter22"),
    ("password == hunter22", "hunter22"),
    ("password === hunter22", "hunter22"),
    ("password => hunter22", "hunter22"),
    (f"db.password{' ' * 38}={' ' * 38}hunter22", "hunter22"),
    ('CREATE USER a IDENTIFIED BY "hunter22"', "hunter22"),
    ("IDENTIFIED BY hunter22", "hunter22"),
    ("alter user a identified by hunter22;", "hunter22"),
    ("OPTIONS (url 'x', password 'hunter22', b 'c')", "hunter22"),
    ('OPTIONS (url "x", password "hunter22")', "hunter22"),
    ("OPTIONS ('password' 'hunter22')", "hunter22"),
    ("OPTIONS (`password` = 'hunter22')", "hunter22"),
    ("OPTIONS (url 'x', token 'hunter22')", "hunter22"),
    ('OPTIONS (\n  "db.secret" "hunter22",\n  url "x"\n)', "hunter22"),
    ("  `api_key` 'hunter22',", "hunter22"),
    (r'{"sql": "OPTIONS (\n  token \"hunter22\",\n  url \"x\")"}', "hunter22"),
    ("OPTIONS (token 'hunter22", "hunter22"),
    ("identified with sha256_password by 'hunter22'", "hunter22"),
    ("IDENTIFIED BY VALUES 'hunter22'", "hunter22"),
    ("|password|hunter22|", "hunter22"),
    ("|  1|  db.password   | hunter 22  |", "22"),
    ('<add key="password" value="hunter22"/>', "hunter22"),
    ('{"name": "db.secret", "value": "hunter 22"}', "22"),
    ("{'Key':'fs.s3a.secret.key','Value':'hunter22'}", "hunter22"),
    ('{\\"name\\": \\"db.secret\\", \\"value\\": \\"hunter 22\\"}', "22"),
    ("curl -u scott:hunter22 https://x", "hunter22"),
    ("curl --user='scott:hunter 22' https://x", "22"),
    ("curl --proxy-user scott:12345 https://x", "12345"),
    ("Cookie: session=hunter22; b=hunter33", "hunter33"),
    ("Cookie: consent=true; b=hunter33", "hunter33"),
    ("{'Set-Cookie': 'sid=hunter22; Secure'}", "hunter22"),
    ("postgres://a:99999/x@h", "99999"),
    ("https://a:12345@h/", "12345"),
    ("hf_" + "aB3" * 12, "aB3aB3"),
    ("dop_v1_" + "a1" * 32, "a1a1"),
    ("shpat_" + "0a" * 16, "0a0a"),
    ("ATATT3xFfGF0" + "aB3_" * 30, "aB3_"),
    ("whsec_" + "aB3" * 11, "aB3aB3"),
    ("PMAK-" + "a1" * 12 + "-" + "b2" * 17, "b2b2"),
    ("ya29.a0AfH6SMBx" + "a_" * 30, "a_a_"),
    ("hvs.abcdefghijklmnopqrstuvwxyz", "abcdefgh"),
    ("vault says s.abcdefghijklmnopqrstuvwx.", "abcdefgh"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0", "eyJzdWI"),
    ("<password>" + "hunter22" * 200, "hunter22"),
    ("(db.password," + "hunter22" * 200, "hunter22"),
    ("(token, 'hunter22')", "hunter22"),
    ("unexpected password: hunter22", "hunter22"),
    ("git clone https://0123abcdef@git.example.com/x", "0123abcdef"),
    ("ALTER ROLE a PASSWORD 'hunter22'", "hunter22"),
    (f"AccountKey {'aB3/' * 21}aB==", "aB3/aB3/"),
    ("POST https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX", "T00000000"),
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
    "partition_key=2026-11-22",
    "primary key (id)",
    "WARN ObjectStore: key=value",
    "join key = customer_id",
    "MERGE INTO t USING s ON t.key = s.key",
    "idempotency_key: run-2026-11-20",
    "author: Jane, authority=x",
    "--token-column e",
    "PASSWORD_FILE=/run/secrets/pw",
    "s3.bucket.key.enabled=true",
    "sort_key=customer_name_long",
    "tokens=512, max_tokens=1000",
    "KeyError: 'customer_id'",
    "object key: tables/t/part-00000-abcdef.parquet",
    "bypass=true, compass: north, passed: 12345",
    "26/11/22 03:36:07 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform",
    "spark.hadoop.fs.s3a.aws.credentials.provider=org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
    "at org.apache.hadoop.security.token.Token.decodeFromUrlString(Token.java:252)",
    "http://127.0.0.1:38829/lake?list-type=2",
    "http://127.0.0.1:65535/path@2x.png",
    "Syntax error at or near 'token': extra input 'x'. (line 1, pos 3)",
    "mismatched input; unexpected token: foo. Unexpected token: foo",
    "PushedFilters: [IsNotNull(token), EqualTo(token,abc)]",
    "select(token, customer_identifier)",
    "GROUP BY (secret, customer_id)",
    "ReadSchema: struct<access_key:string,token:string>",
    "struct<token:array<string>,secret:varchar(20),password:decimal(10,2)>",
    "|  password|   string|   null|",
    '{"name": "password", "type": "string", "value": null}',
    '{"name": "number of tokens", "value": "7"}',
    "Basic statistics: 1",
    "basic authentication failed",
    "Bearer authentication required",
    "rows are identified by customer_id",
    "parse error (token 'SELECT' was not expected)",
    "token 'SELECT' is not known",
    '{"a": "no password ", "b": 1}',
    "docker run -u 1000:1000 x",
    "submit -u s3://bucket/key",
    "Cookie: none",
    "cookie: enabled=true for session tracking",
    "AuthenticationException: authorization: denied for user bob",
    "Password: must not be empty",
    "secret: not found in namespace prod",
    "WARN token=expired after 300 s",
    "auth: retry in 5 s",
    "credentials: provider chain exhausted",
    "s.getCheckpointLocationPath(x), t.s.getCheckpointLocationPath",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    """The form alone suffices; the value was not known before."""
    assert secret in text
    assert secret not in redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text: str) -> None:
    """An over-masked log is unreadable."""
    assert redact(text) == text


@pytest.mark.parametrize(("text", "_secret"), SECRETS)
def test_masking_twice_changes_nothing(text: str, _secret: str) -> None:
    """The mask itself is not a secret."""
    assert redact(redact(text)) == redact(text)


_ALIKE = str.maketrans("ikIKsS", "\u0131\u212a\u0130\u212a\u017f\u017f")
"""Letters that equal i, k and s where a pattern ignores case."""


def test_no_quick_check_lets_a_secret_by() -> None:
    """What a pattern finds has the pattern's word, and a secret's name its hint, in letters of any case and kind."""
    texts = [form(text) for text, _ in SECRETS for form in (str, str.upper, str.lower, str.swapcase)]
    texts += [text.translate(_ALIKE) for text in texts]
    texts += [text.replace(" ", "\t") for text in texts]
    for word, shape in secret_forms._SHAPES:
        found = [text for text in texts if shape.search(text)]
        assert found, shape.pattern
        assert [text for text in found if word not in text.lower()] == []
    for word, name, value in (*secret_forms._FORMS, secret_forms._OPTIONS):
        found = [text for text in texts if any(secret_forms._beside(name, value, text))]
        assert found, name.pattern
        assert [text for text in found if word not in text.lower() or HINT.search(text.lower()) is None] == []


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("INFO TaskSetManager: Starting task 12.0 in stage 3.0 (TID 312) (executor driver, partition 12)", 5),
        ('{"id": 12, "customer_key": "K-000123", "url": "https://example.org/a?x=1", "tags": ["a", "b"]}', 8),
    ],
)
def test_an_ordinary_line_is_searched_for_few_forms(monkeypatch: pytest.MonkeyPatch, line: str, most: int) -> None:
    """A job may log megabytes of them, and has little time for the search."""
    counted: list[str] = []

    class Counted:
        def sub(self, _: object, text: str) -> str:
            counted.append(text)
            return text

    monkeypatch.setattr(secret_forms, "_SHAPES", tuple((word, Counted()) for word, _ in secret_forms._SHAPES))
    assert secret_forms.mask_forms(line) == line
    assert 0 < len(counted) <= most


def test_a_metric_keeps_its_numbers_and_loses_its_secrets() -> None:
    """Texts are masked by value and by form, also in lists and objects; CloudWatch's fields stay."""
    metric = {
        "_aws": {"CloudWatchMetrics": [{"Namespace": "Jobs", "Metrics": [{"Name": "token"}]}]},
        "token": 12,
        "user": {"password": "hunter22", "tags": ["open sesame", "AKIAIOSFODNN7EXAMPLE", "nightly"]},
        "note": "password=hunter23",
    }
    masked = Redactor(("open sesame",)).metric(metric)
    assert masked == {
        "_aws": metric["_aws"],
        "token": 12,
        "user": {"password": "[redacted]", "tags": ["[redacted]", "[redacted]", "nightly"]},
        "note": "password=[redacted]",
    }


def test_a_private_key_is_masked_line_by_line() -> None:
    """A stream shows one line at a time."""
    keys = PrivateKeys()
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nxyz\n-----END RSA PRIVATE KEY-----\nb"
    assert ["[redacted]" if keys.is_inside(line) else redact(line) for line in text.split("\n")] == [
        "a",
        *["[redacted]"] * 4,
        "b",
    ]


@pytest.mark.parametrize("before", ["2026-11-26 10:00:0{} INFO key: ", "> ", "  + ", "[{}] (main) "])
def test_a_private_key_whose_lines_have_a_prefix_is_masked(before: str) -> None:
    """Short lines are masked, too, and the log line after the key is shown."""
    keys = PrivateKeys()
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEowIBAAKC", "xyz=", "other words", "MIIE"]
    assert [keys.is_inside(before.format(index) + line) for index, line in enumerate(lines)] == [
        *(False, True, True, False, False)
    ]


@pytest.mark.parametrize("line", ["+/=" * 20 + "x", "  " + "+" * 39, "«" * 16 + "A+/=" * 9 + "»" * 16, "", "\t="])
def test_a_line_of_base64_is_of_a_key_whatever_surrounds_it(line: str) -> None:
    """Its own characters count as surroundings, too."""
    keys = PrivateKeys()
    assert [keys.is_inside(one) for one in ("-----BEGIN PRIVATE KEY-----", line)] == [False, True]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("before", ["", "12" * 120_000])
def test_hostile_lines_in_a_key_are_judged_in_bounded_time(before: str) -> None:
    """Every line of a job is judged, at the speed of its reading (the test's own time limit decides)."""
    keys = PrivateKeys()
    lines = [f"{before}-----BEGIN PRIVATE KEY-----", "=+/" * 80_000 + "é" * 17]
    assert not any(keys.is_inside(line) for line in lines * 40)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("password", "a", "=", "{'", "-", "://", "('key',", "password=", "<name>", "a.b-", "x=", '"', "\\", "[("),
        *("jdbc:oracle:thin:", "eyJ", "--pass ", "key -> ", "A1b", "sig=", "-----BEGIN PRIVATE KEY", "secret: 'x"),
        *(
            "password ",
            "x_key='",
            "x_key='\\",
            'x_key=\\"',
            "token:= ",
            "identified by ",
            "create user a ",
            "|password",
        ),
        *(
            "| ",
            "|token|string",
            '<add key="password" ',
            "-u a:",
            "--user=a",
            "cookie: ",
            "cookie: a",
            "s.",
            "(a.b,",
            "(p.pwd,arn:",
            "(token '",
            ",token 'x",
            '(token \\"',
            ",\\n",
            "\ntoken '\\",
            'password "x',
            "password 'x''",
            "token='x' ",
            "x_key=true 'x' ",
            "(token 'x' r'",
        ),
        *("password" + " " * 40, "token=" + " " * 44, "near '", "array<", "token:array<", "<token>x", "eyJhbGciOi."),
    ],
)
def test_hostile_lines_are_masked_in_bounded_time(unit: str) -> None:
    """No pattern backtracks over a long line (the test's own time limit decides)."""
    redact(unit * (65_536 // len(unit)))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["s.", "/key="])
def test_a_text_of_sixteen_lines_takes_sixteen_times_as_long_as_one(unit: str) -> None:
    """A metric or an argument may be that long; quadratic time would be many minutes (time limit as above)."""
    text = "token " + unit * (1_048_576 // len(unit))
    assert redact(text) == text


def test_a_name_is_judged_by_the_beginning_of_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, with names inside each other's values, each value would be read to the end of the line."""
    judged: list[int] = []

    def count(_name: str, value: str) -> bool:
        judged.append(len(value))
        return False

    monkeypatch.setattr(secret_forms, "is_secret", count)
    secret_forms.mask_forms("/A_KEY=" * 1000)  # the last one has no value
    assert len(judged) == 999
    assert max(judged) <= 300


@pytest.mark.parametrize("text", ["password={}", "(db.password,{})", "<password>{}</password>", "--password {}"])
def test_a_long_value_is_masked_to_its_end(text: str) -> None:
    """It is longer than the part by which it is judged."""
    assert "hunter22" not in redact(text.format("hunter22" * 2000))


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8, max_size=40), st.integers(0, 6))
def test_a_secret_survives_in_no_form(secret: str, form: int) -> None:
    """Whatever its letters are, it is masked beside the name of a secret, and masking twice changes nothing."""
    assume(is_secret("password", secret))  # "undefined" and the types of SQL are none
    text = (
        f"password={secret}",
        f'{{"dbPassword": "{secret}"}}',
        f"[('fs.s3a.secret.key', '{secret}')]",
        f"--client-secret {secret} --day 1",
        f"Map(api_key -> {secret}, a -> b)",
        f"jdbc:postgresql://user:{secret}x@host/db",
        f"<db.password>{secret}</db.password>",
    )[form]
    masked = redact(text)
    assert secret not in masked or secret.lower() in text.lower().replace(secret.lower(), "", 1)
    assert redact(masked) == masked


def test_stars_and_paths_are_no_secrets() -> None:
    """A masked value reveals nothing, and a path only the location of a key."""
    assert not is_secret("password", "******")
    assert not is_secret("signing.key", "/etc/keys/signing")


def test_a_secret_inside_a_secret_is_masked_once() -> None:
    """The secret gets one mask."""
    assert redact("password=token=abc12345x") == "password=[redacted]"


@pytest.mark.parametrize(
    "text",
    ["AROAIOSFODNN7EXAMPLE", "AIDAIOSFODNN7EXAMPLE", "u?X-Goog-Signature=0123abcd", "pypi-AgEIcHlwaS5vcmcCJDEy"],
)
def test_shapes_of_issuers_are_known(text: str) -> None:
    """Each is recognised by its prefix alone."""
    assert redact(f"see {text} here").count("[redacted]") == 1


def test_the_path_of_a_secret_is_shown() -> None:
    """It shows where to look."""
    line = "no such file /run/secrets/pw"
    assert Redactor.of_environment({"DB_PASSWORD": "/run/secrets/pw"})(line) == line


@pytest.mark.parametrize("name", ["INPUT_KEY", "OUTPUT_KEY", "UPSERT_KEY", "S3_KEY", "PARTITION_KEY", "CONSUMED_KEY"])
@pytest.mark.parametrize("value", ["raw/2026/orders.csv", "customer_id", "order_date_2026", "landing-zone"])
def test_paths_and_columns_that_are_called_keys_are_shown(name: str, value: str) -> None:
    """They are shown beside the name and in other lines."""
    assert redact(f"{name}={value}") == f"{name}={value}"
    assert Redactor.of_environment({name: value}).known == ()


def test_a_constant_that_is_called_a_key_is_secret_if_it_is_random() -> None:
    """The value decides where the name may be that of a path."""
    assert redact("API_V2_KEY=Zm9vYmFyMTIzNDU2Nzg5") == "API_V2_KEY=[redacted]"


def test_a_message_is_masked_before_it_is_shortened() -> None:
    """If the message had already lost its end, the beginning of a known value is masked, too."""
    known = Redactor(("open sesame, said the thief",))
    assert known.shortened("x open sesame, said the thief", 10) == "x [redacte…"
    assert "open" not in known.shortened("the cave: open sesame, said the", 100, is_cut=True)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"password": 'Zq9"hunter2x!hunter'}),
        json.dumps(json.dumps({"password": 'Zq9"hunter2x!hunter'})),
        "conf = {'password': 'Zq9\\'hunter2x'}",
    ],
)
def test_a_quote_within_a_value_does_not_end_it(text: str) -> None:
    """It is escaped, once or twice."""
    assert "hunter" not in redact(text)
