"""The start times of multipart uploads: moto says 2010 for every one, so a clean-up by age would abort all."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from scripts.emulator.exchange import Reply, Request

__all__ = ["Beginnings"]

_ID: Final = re.compile(rb"<UploadId>([^<]+)</UploadId>")
_UPLOAD: Final = re.compile(rb"<Upload>.*?</Upload>", re.DOTALL)
_INITIATED: Final = re.compile(rb"(?<=<Initiated>)[^<]+")
_KNOWN_MAX: Final = 100_000


class Beginnings:
    """Records each start, and puts it into the listings."""

    def __init__(self) -> None:
        self._at: dict[bytes, bytes] = {}

    def told(self, request: Request, reply: Reply) -> Reply:
        """Return the answer as S3 would give it."""
        if request.operation == "CreateMultipartUpload" and (found := _ID.search(reply.body)) is not None:
            if len(self._at) < _KNOWN_MAX:
                self._at[found[1]] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()).encode()
        elif request.operation == "ListMultipartUploads":
            return replace(reply, body=_UPLOAD.sub(self._dated, reply.body))  # as long as it was, to the byte
        return reply

    def _dated(self, upload: re.Match[bytes]) -> bytes:
        found = _ID.search(upload[0])
        at = None if found is None else self._at.get(found[1])
        return upload[0] if at is None else _INITIATED.sub(at, upload[0])
