"""Decide by the name of a setting, option or variable whether its value is a secret.

A name is split into words, so that `fs.s3a.secret.key`, `dbPassword` and `DB_PASSWORD` are read alike. The last word
decides whether it names the secret itself or something about it: `--token-column` and `PASSWORD_FILE` do not name a
secret.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["HINT", "is_common", "is_secret", "may_name_a_secret"]

HINT: Final = re.compile(r"pass|pwd|secret|token|key|cred|auth|connection|access|sas|cookie|assertion")
"""A quick check before the slow ones: text without any of these, in small letters, contains no name of a secret."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAME_MAX: Final = 256
_REFERENCES: Final = "SOAL_SECRETS"
"""The variable holds references to secrets, and errors name it."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
# Each at the end of a word, which excludes tokenizer and secretary: `pgpassword`, `authtoken`, `clientsecret1`.
_CERTAIN: Final = re.compile(
    r"(?:pass_?(?:word|wd|phrase|code)s?|pwd|secrets?|token|credentials?|authorization|api_?key|access_?key|account_?key"
    r"|private_?key|secret_?key|connection_?string|access_?signature|(?:header|set)_cookie"
    r"|(?:client|oauth2?|jwt)_assertion|(?<![a-z])sas)\d*(?=_|\Z)"
)
# These words have harmless meanings, too: the value decides.
_PASS: Final = re.compile(r"(?:\A|_|db|user|my|pg|sql|root|admin|smtp|ftp|mail|redis)pass\d*\Z")
_AUTH: Final = re.compile(r"(?:\A|_)auth\d*\Z")
_KEY: Final = re.compile(r"(?:\A|_)([a-z0-9]+)_key\d*\Z")
# clientToken and similar names mean a run, a page or a position in a text: show their values.
_PUBLIC_TOKEN: Final = re.compile(
    r"(?:\A|_)(?:client|next|continuation|fencing|fence|page|paging|start|starting|resume|sync|idempotency|delegation|kind"
    r"|unexpected|mismatched|missing|extraneous|next_?page)_token\Z"
)
_HARMLESS_ENDS: Final = _words("""
    age alg algorithm alias arn attribute bits bucket chars class cls col cols column columns count created days
    dir directory disabled enabled endpoint expiration expires expiry factory field fields file filename files
    folder format header host hosts index interval issuer java kind length limit location manager max method min mode
    ms name names number path paths pattern policy port position prefix provider providers py query regex region
    required retries role rotation scala scheme seconds service size source state status store suffix table template
    timeout tokenizer ttl type types uri url usage valid validator version
""")
_KEYS_OF_SECRETS: Final = _words("""
    admin aes application auth cipher client consumer crypto data decryption deploy encrypt encryption fernet
    hmac jwt master rsa s3a shared sign signing sse ssh ssl storage subscription tls webhook
""")
_RANDOM: Final = re.compile(
    r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9+=_-]{16,}\Z|[0-9a-fA-F-]{32,}\Z"
)
"""The value of a constant or variable such as API_V2_KEY; names of paths and columns look the same (INPUT_KEY)."""
_KEY_MIN_LENGTH: Final = 8
_PASS_MIN_LENGTH: Final = 4
_SCHEMES: Final = _words("""
    basic bearer certificate digest iam jwt kerberos ldap md5 negotiate ntlm oauth oauth2 optional peer plain
    proxy required scram sigv4 simple spnego ssl tls token trust
""")
_PLAIN: Final = _words("""
    any bool bytes denied empty expired failed false granted int invalid missing must nil no none not null off on
    option[string] optional provider refused rejected required retry revoked str string true undefined unknown unset yes
""")
"""Words that are not secrets, including those of messages about a secret: `token: expired`."""
_COMMON: Final = _words(
    "default example localhost local none null password production public secret staging test token"
)
_PLACE_OR_DAY: Final = re.compile(r"[a-z]{2}(?:-[a-z]{2,10}){1,3}-\d|\d{4}-\d\d(?:-\d\d)?")
"""An AWS region; a month or day."""
_TYPE: Final = re.compile(
    r"(?:array<)*(?:string|binary|boolean|byte|tinyint|smallint|short|int|integer|bigint|long|float|double|date"
    r"|timestamp(?:_ntz|_ltz)?|(?:decimal|char|varchar)(?:\(\d+\)?)?)>*\Z"
)
"""A type of SQL: beside a name in a schema, it is a column's type."""


def may_name_a_secret(name: str) -> bool:
    """Return whether some value of this name would be a secret, by the name alone."""
    return HINT.search(name.lower()) is not None and _kind(name[-_NAME_MAX:]) != "none"


def is_common(value: str) -> bool:
    """Return whether a value is common in lines without a secret, so that it must be masked only beside its name."""
    return value.lower() in _COMMON | _PLAIN or _PLACE_OR_DAY.fullmatch(value) is not None


def is_secret(name: str, value: str) -> bool:
    """Return whether a name says that this value is a secret."""
    bare = value.strip("\\\"'")
    if (
        not bare
        or bare.lower() in _PLAIN
        or bare.startswith("arn:")
        or not bare.strip("*")
        or _TYPE.match(bare.lower())
    ):
        return False
    match _kind(name[-_NAME_MAX:]):
        case "certain":
            return not (bare.startswith("/") and name.lower().endswith("pwd"))  # the shell's own variables
        case "constant" | "key" as kind if kind == "key" or _RANDOM.match(bare):
            return len(bare) >= _KEY_MIN_LENGTH and not bare.startswith("/")
        case "auth":
            return bare.lower() not in _SCHEMES
        case "pass":
            return not (bare.isdigit() and len(bare) < _PASS_MIN_LENGTH)
    return False


@lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    words = _SEPARATORS.sub("_", _HUMP.sub("_", name).lower()).strip("_")
    if (
        name == _REFERENCES
        or words.rpartition("_")[2].rstrip("0123456789") in _HARMLESS_ENDS
        or _PUBLIC_TOKEN.search(words)
    ):
        return "none"
    if _CERTAIN.search(words):
        return "certain"
    for kind, pattern in (("auth", _AUTH), ("pass", _PASS)):
        if pattern.search(words):
            return kind
    if match := _KEY.search(words):
        of = match[1].rstrip("0123456789")
        if of in _KEYS_OF_SECRETS:
            return "key"
        return "constant" if name == name.upper() else "none"
    return "none"
