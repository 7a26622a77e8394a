"""The forms of secrets: beside a name that says so, in a URL, or with a shape of their own.

Each pattern scans a line once: names, schemes and gaps are bounded wherever a match could start at each character, and
so is the part of a value by which a name is judged. Masked values are skipped, so that masking twice changes nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from handler.redaction.secret_names import HINT, is_secret, may_name_a_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MASK", "mask_forms", "secrets_in"]

MASK: Final = "[redacted]"
_UNMASKED: Final = r"(?!\[redacted\])"

_BARE_KEY: Final = (
    r"(?<![A-Za-z0-9/+=])(?=[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))(?=[^\s]{0,39}[a-z])(?=[^\s]{0,39}[A-Z])"
    r"(?=[^\s]{0,39}[0-9])(?!/)(?![A-Za-z0-9+=]*(?:/[A-Za-z0-9+=]*){4})[A-Za-z0-9/+]{40}"
)
_PRIVATE_KEY: Final = r"[A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?"
_SCHEME: Final = r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,40}"
_ISSUED: Final = (
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl[a-z]{2,5}-[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|sk-[A-Za-z0-9_-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|AIza[A-Za-z0-9_-]{35}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|dapi[0-9a-f]{32}(?:-\d)?|npm_[A-Za-z0-9]{36}"
    r"|pypi-[A-Za-z0-9_-]{16,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}"
    r"|hf_[A-Za-z0-9]{20,}|do[opr]_v1_[0-9a-f]{32,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|ATATT3[A-Za-z0-9_=-]{20,}"
    r"|whsec_[A-Za-z0-9+/=]{16,}|PMAK-[A-Za-z0-9-]{20,}|ya29\.[A-Za-z0-9_-]{20,}"
    # of an older Vault, but not a method call
    r"|(?<![\w.])s\.[A-Za-z0-9]{24}(?![\w(]|\.\w)"
)
"""Tokens with a prefix of their issuer."""
_PORT: Final = r"(?:\d{1,4}|[1-5]\d{4}|6[0-5]\d{3})(?:[/\s'\"]|$)"
_PROSE: Final = r"(?:authenticat\w{2,4}|authori[sz]ation|statistics|information|operations?|functions?|credentials?)"
# A literal of SQL up to its last quote: raw, in pieces, or with a doubled quote in it.
_LITERAL: Final = r"[rR]?'[^'\n]{1,256}(?:'[^\S\n]{0,8}[rR]?'[^'\n]{0,256})*"
# Only the group `secret` is masked. Before each pattern is the word of a quick check: what matches has it, in small
# letters. Where a pattern ignores case, its word has no i or s, which equal other small letters of Unicode, too.
_SHAPES: Final = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        (
            "private key",
            rf"(?s)(?P<secret>-----BEGIN {_PRIVATE_KEY}-----.*?(?:-----END {_PRIVATE_KEY}-----|\Z))",
        ),
        # user:password@ in any URL; the password may hold @ and /, and a port is not a password
        ("@", rf"(?i){_SCHEME}://(?P<secret>[^\s/:@'\"<>]{{0,256}}:(?!{_PORT})[^\s'\"<>]{{0,256}})@"),
        ("@", r"(?i)(?<![a-z0-9+.-])(?:https?|ftp)://(?P<secret>[^\s/:@'\"<>]{1,256})@"),
        # Oracle's own: user/password@
        ("@", r"(?i)\bjdbc:oracle:\w{2,10}:(?P<secret>[^\s/@'\"]{1,128}/[^\s@]{1,128})@"),
        # pre-signed URLs of AWS and of Azure; the header of a signed request
        (
            "=",
            (
                r"(?i)\b(?:X-Amz-(?:Signature|Credential|Security-Token)|X-Goog-(?:Signature|Credential))="
                r"(?P<secret>[^&\s'\"]+)"
            ),
        ),
        ("=", r"(?i)(?<![\w-])(?:sig|signature)=(?P<secret>[A-Za-z0-9%+/_-]{16,}={0,2})"),
        ("", rf"(?i)\b(?:bearer|basic)\s{{1,8}}(?!{_PROSE}\b)(?P<secret>[A-Za-z0-9._~+/=-]{{8,}})"),
        (
            "word",
            (
                r"(?i)\bpassword(?:\\?[\"'`])?\s{1,8}"
                rf"(?P<secret>{_LITERAL}'|\\?\"(?![,:}}\]])[^\"\n]{{1,256}}(?:\"\"[^\"\n]{{0,256}})*\")"
            ),
        ),
        # SQL's IDENTIFIED BY; without quotes only in capitals or after CREATE USER: English says "identified by", too
        (
            "by",
            (
                r"(?i)\bidentified(?:\s{1,8}with\s{1,8}\S{1,64})?\s{1,8}by\s{1,8}(?:(?:password|values)\s{1,8})?"
                rf"(?P<secret>{_LITERAL}'?|\\?\"[^\"\n]{{1,256}}(?:\"\"[^\"\n]{{0,256}})*\"?)"
            ),
        ),
        (
            "by",
            (
                r"(?:\bIDENTIFIED|(?i:\b(?:create|alter)\s{1,8}user\s{1,8}\S{1,128}\s{1,8}identified))\s{1,8}(?i:by)\s{1,8}"
                r"(?P<secret>[^\s'\",;]{2,256})"
            ),
        ),
        # curl's user:password, but neither a URL nor the numeric ids of a user and a group
        (
            "-u",
            (
                r"(?<![\w-])(?:-u\s{1,8}|--(?:proxy-)?user[\s=]{1,8})([\"'])?(?!\d{1,10}:\d{1,10}(?!\S))[^\s:'\"/]{1,128}:(?!//)"
                r"(?P<secret>(?(1)[^'\"\n]{1,256}|[^\s'\"]{1,256}))"
            ),
        ),
        (
            "coo",
            (
                r"(?i)(?<![\w-])(?:set-)?cookie\\?[\"']?\s{0,4}:\s{0,4}(?P<secret>(?=[^\s=;]{1,128}=)(?!\w{1,64}=(?:true|false)(?!\S))"
                r"(?:\\?\"[^\"\n]+\"?|'[^'\n]+'?|[^\n]+))"
            ),
        ),
        ("", r"(?<![A-Z0-9])(?P<secret>(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|ANPA|AROA)[A-Z0-9]{16})(?![A-Z0-9])"),
        # session tokens of STS
        ("", r"(?<![A-Za-z0-9])(?P<secret>(?:IQoJ|FwoG|FQoG)[A-Za-z0-9/+=]{40,})"),
        # a bare secret access key: 40 characters of all kinds, not a path
        ("", rf"(?P<secret>{_BARE_KEY})"),
        # a key of an Azure account: 64 bytes
        ("==", r"(?<![A-Za-z0-9/+=])(?P<secret>[A-Za-z0-9/+]{86}==)"),
        ("eyj", r"(?<![\w-])(?P<secret>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"),
        ("", rf"(?<![A-Za-z0-9])(?P<secret>{_ISSUED})"),
        ("://", r"(?i)https://hooks\.slack\.com/services/(?P<secret>[A-Z0-9_/-]{20,})"),
    )
)

_NAME: Final = r"(?P<name>[\w.-]++)"
# An escaped quote in a text of SQL, Python or JSON is a letter, also in JSON within JSON. SQL and Python put letters
# before a text (`r'…'`) and join the texts that follow one another; a doubled quote of SQL is such a place, too. A text
# before a colon is the next name.
_LETTERS: Final = r"(?:\b[a-zA-Z]{1,2})?+"
_TEXT: Final = (
    _LETTERS + r"""(?:\\"(?>[^"\\]|\\\\\\"|\\[^"]){0,8192}?\\"|"(?>[^"\\]|\\.){0,8192}?"|'(?>[^'\\]|\\.){0,8192}?')"""
)
_QUOTED: Final = rf"""{_TEXT}(?:[^\S\n]{{0,8}}+{_TEXT}(?![^\S\n]{{0,8}}[:=]))*(?:["'][^"'\n]*\Z)?"""
_UNCLOSED: Final = rf"""{_LETTERS}\\?["'][^\n]*"""
"""The value of a truncated line, or the first line of a longer value."""
_GAP: Final = r"[^\S\n]{0,40}+\s{0,4}"
"""Many blanks may align settings; a gap has few line ends."""
_WORDED: Final = r"(?:(?:Basic|Bearer|Digest|Token|Negotiate)\s{1,4})?[^\s,;&'\"}\])]+"
_VALUE: Final = re.compile(rf"{_UNMASKED}(?:{_QUOTED}|\[[^\[\]\n]{{0,512}}\]|{_UNCLOSED}|{_WORDED})")
# The text before a value: `name = value`, `"name": "value"`, `name -> value`, also in a URL that is quoted in another
# URL, and with the sign as a number, as Gson and HTML write it; not in the ARN of a secret, and not where a parser
# names the word at which it stopped.
_ASSIGNED: Final = re.compile(
    rf"""(?<![\w.-])(?<!\d{{12}}:)(?<!near ['"])(?!(?<=nexpected )[Tt]oken\b){_NAME}(?:\\?["'`])?{_GAP}"""
    rf"""(?::=|={{1,3}}>?|->|:|%3[AaDd]|\\u003[AaDd]|\\x3[AaDd]|&#(?:58|61);){_GAP}"""
)
_OPTION: Final = re.compile(r"(?<![\w.-])(?P<name>--[\w.-]++)\s{1,8}(?!-)(?=\S)")
_OPTION_VALUE: Final = re.compile(rf"{_UNMASKED}(?:{_QUOTED}|{_UNCLOSED}|\S+)")
# Not two bare words: the second is another column, or the value in a filter.
_PAIR: Final = re.compile(
    rf"""[(\[]\s{{0,4}}(?=\\?["']|[\w-]{{1,256}}(?:\.|\s{{0,4}},\s{{0,4}}\\?["']))"""
    rf"""(?:\\?["'])?{_NAME}(?:\\?["'])?\s{{0,4}},\s{{0,4}}"""
)
_PAIR_VALUE: Final = re.compile(rf"{_UNMASKED}(?:(?:{_QUOTED}|[^\s'\")\]]++)(?=\s{{0,4}}[)\]])|[^\s'\")\]]{{1024,}})")
# Options of SQL without a sign between: `OPTIONS (url '…', "token" '…')`, also in JSON. Prose goes on after a word in
# quotes.
_SQL_OPTION: Final = re.compile(
    rf"""(?m)(?:^|[(,])(?:\s|\\[nrt]){{0,40}}+(?:\\?["'`])?{_NAME}(?:\\?["'`])?(?:\s|\\[nrt]){{1,8}}(?=[rR]?\\?["'])"""
)
_SQL_OPTION_VALUE: Final = re.compile(
    rf"""{_UNMASKED}(?:(?:{_QUOTED})(?=(?:\s|\\[nrt]){{0,40}}(?:[,)]|\Z))|\\?["'][^"'\n]*\Z)"""
)
_XML: Final = re.compile(rf"<(?:name>\s{{0,8}})?{_NAME}(?:\s{{0,8}}</name>\s{{0,64}}<value)?>")
# As in a pair, a value of this length was truncated.
_XML_VALUE: Final = re.compile(rf"{_UNMASKED}(?:[^<\n]++(?=</)|[^<\n]{{1024,}})")
# An element of XML with two attributes, and an object with two members.
_ATTRIBUTE: Final = re.compile(
    rf"""(?i)(?<![\w-])(?:key|name)(?:=|\\?["']\s{{0,4}}:\s{{0,4}})\\?["']{_NAME}\\?["']\s{{0,8}},?\s{{0,8}}"""
    rf"""(?:\\?["'])?value(?:=|\\?["']\s{{0,4}}:\s{{0,4}})(?=\[?\\?["'])"""
)
_CELL: Final = re.compile(rf"(?<=\|)[^\S\n]{{0,256}}+{_NAME}[^\S\n]{{0,256}}+\|")
_CELL_VALUE: Final = re.compile(rf"[^\S\n]{{0,256}}+{_UNMASKED}[^|\n]+")
_FORMS: Final = (
    ("", _ASSIGNED, _VALUE),
    (",", _PAIR, _PAIR_VALUE),
    ("", _SQL_OPTION, _SQL_OPTION_VALUE),
    ("<", _XML, _XML_VALUE),
    ("value", _ATTRIBUTE, _VALUE),
    ("|", _CELL, _CELL_VALUE),
)
_OPTIONS: Final = ("--", _OPTION, _OPTION_VALUE)
"""As in `_SHAPES`: the word of a quick check, and patterns."""
_READ_MAX: Final = 8_300
"""The length of text read for one value before its name is known to be a secret's: a quoted value and its name."""
_JUDGED_MAX: Final = 300
"""The length of a value that is judged: types and harmless words are shorter."""


def _go_on() -> None:
    """Have no limit."""


def mask_forms(text: str, look: Callable[[], None] = _go_on) -> str:
    """Mask all text that has the form of a secret. `look` is called before each read of a value, and may raise."""
    small = text.lower()  # of the text with its secrets: a mask brings no word
    for word, shape in _SHAPES:
        if word in small:
            text = shape.sub(_mask_group, text)
    if HINT.search(small) is None:
        return text
    for word, name, value in (*_FORMS, _OPTIONS):
        if word in small:
            text = _replaced(text, _beside(name, value, text, look))
    return text


def secrets_in(text: str, look: Callable[[], None] = _go_on) -> Iterator[str]:
    """Yield the secrets in a text without their quotes; for `user:password`, also the password. `look` as above."""
    groups = [shape_match["secret"] for _, shape in _SHAPES for shape_match in shape.finditer(text)]
    groups += [text[start:end] for _, name, value in _FORMS for start, end in _beside(name, value, text, look)]
    for secret in groups:
        bare = secret.strip().strip("\\\"'")
        yield bare
        yield bare.partition(":" if ":" in bare else "/")[2]


def _mask_group(match: re.Match[str]) -> str:
    """Mask the group `secret` of a match unless it is already masked."""
    text, start = match[0], match.start()
    if MASK in match["secret"]:
        return text
    return f"{text[: match.start('secret') - start]}{MASK}{text[match.end('secret') - start :]}"


def _beside(
    names: re.Pattern[str], values: re.Pattern[str], text: str, look: Callable[[], None] = _go_on
) -> Iterator[tuple[int, int]]:
    """Yield start and end of each value beside the name of a secret."""
    end = 0
    for match in names.finditer(text):
        name, start = match["name"], match.end()
        if match.start() < end or not may_name_a_secret(name):
            continue
        look()
        # Bound the read: names without a secret value may repeat many times in a text. A value that is no secret is
        # read again from the next name on, since it may hold one: `STORE_KEY="password=…"`.
        value = values.match(text, start, start + _READ_MAX)
        if value is not None and is_secret(name, value[0][:_JUDGED_MAX].strip()):
            value = values.match(text, start) or value
            end = value.end()
            yield value.span()


def _replaced(text: str, spans: Iterator[tuple[int, int]]) -> str:
    """Replace each span by the mask."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [text[end:start], MASK]
        end = stop
    return "".join([*parts, text[end:]])
