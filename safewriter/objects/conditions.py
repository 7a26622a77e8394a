"""Servers that may not keep the conditions of writes. Some ignore the headers: then two attempts would own one write.

AWS's own servers keep them, and are not asked. Any other is asked before a process first claims a write there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["WITNESSES", "ignored", "other_server"]

_AWS: Final = re.compile(
    r"(.+\.)?(s3[a-z0-9-]*|dynamodb|ddb)(\.dualstack)?(\.[a-z]{2,}(-[a-z]+)+-\d+)?(\.vpce)?\.(amazonaws\.com(\.cn)?|api\.aws)"
)
"""https://docs.aws.amazon.com/general/latest/gr/rande.html; an endpoint that this misses is probed."""

WITNESSES: Final[Mapping[str, Mapping[str, str]]] = {
    "If-None-Match": {"IfNoneMatch": "*"},
    "If-Match": {"IfMatch": '"00000000000000000000000000000000"'},
}
"""Conditions that no object meets which is there, by their headers: arguments of boto3's PUT."""


def other_server(endpoint: str) -> str:
    """Return the endpoint, or "" for one of AWS's own, which keep the conditions of writes."""
    return "" if _AWS.fullmatch(urlsplit(endpoint).hostname or "") else endpoint


def ignored(server: str, uri: str, header: str) -> UnsupportedError:
    """Return the error about a server that has put an object over itself in spite of a header."""
    return UnsupportedError(
        f"nothing was written: {server} ignores the condition of a write. It has put {uri} over itself in spite of"
        f" {header}, so two jobs could own one write, and lose each other's commits. Use a server that answers such a"
        " PUT with 412, as AWS's S3 does (soal doctor tests one)"
    )
