"""The pointer behind a REST catalog: the server checks the requirements of a commit, and writes the metadata itself.

https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

import functools
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.iceberg.metadata import FenceTag, LiveTable, head_of
from safewriter.tables.iceberg.pointer import Pointer
from safewriter.tables.iceberg.space import TEXT_MAX_BYTES, check_space

if TYPE_CHECKING:
    from requests import Response

__all__ = ["RestPointer"]

_TIMEOUT_S: Final = (5, 30)  # to connect, and to answer: for a commit the server sends several requests to S3
_LOGIN: Final = (HTTPStatus.UNAUTHORIZED, 419)  # the latter is Iceberg's own, for a login that has expired
_SHOWN_MAX: Final = 300
_BLOCK: Final = 1 << 20


class RestPointer(Pointer):
    """One table of a server."""

    def _read(self) -> LiveTable | None:
        answer = self._sent("GET", None)
        body = self._body(answer)
        if answer.status_code == HTTPStatus.NOT_FOUND and _is_of_a_catalog(body):
            return None
        table = self._table(answer, body)
        return LiveTable(dict(table["metadata"]), None, table.get("metadata-location"))

    def _commit(self, table: LiveTable, fence: FenceTag) -> bool:
        requirements = [
            {"type": "assert-table-uuid", "uuid": table.metadata.get("table-uuid")},
            {"type": "assert-ref-snapshot-id", "ref": fence.name, "snapshot-id": None},
        ]
        update = {"action": "set-snapshot-ref", "ref-name": fence.name, **fence.tag}
        answer = self._sent("POST", {"requirements": requirements, "updates": [update]})
        if answer.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            return False
        if head_of(self._table(answer, self._body(answer))["metadata"], fence.name) != fence.snapshot_id:
            # Nessie accepts each change of references, and makes none:
            # https://github.com/apache/iceberg-python/issues/2828
            raise StoreError(f"{self.name}: the catalog's answer to a commit does not show the tag that it was to add")
        return True

    def _sent(self, method: str, body: dict[str, Any] | None) -> Response:
        catalog = self.opened()
        table = catalog._split_identifier_for_path(self.name.identifier)  # noqa: SLF001 - how this server writes names
        url = catalog.url("namespaces/{namespace}/tables/{table}", **table)
        session = catalog._session  # noqa: SLF001 - it is logged in
        send = functools.partial(session.request, method, url, json=body, timeout=_TIMEOUT_S, stream=True)
        answer: Response = send()
        if answer.status_code in _LOGIN:
            catalog._refresh_token()  # noqa: SLF001 - as pyiceberg does with its own requests
            answer = send()
        return answer

    def _body(self, answer: Response) -> bytes:
        body = b""
        for block in answer.iter_content(_BLOCK):
            body += block
            if len(body) > TEXT_MAX_BYTES:
                raise StoreError(f"{self.name}: the catalog's answer has more than {TEXT_MAX_BYTES:,} bytes")
        return body

    def _table(self, answer: Response, body: bytes) -> dict[str, Any]:
        if not answer.ok:
            said = body.decode(errors="replace")
            # The ellipsis shows the handler that half of a secret may precede it.
            said = said if len(said) <= _SHOWN_MAX else f"{said[:_SHOWN_MAX]}…"
            raise StoreError(f"{self.name}: the catalog answers {answer.status_code}: {said}")
        check_space(f"of {self.name}", body)
        return dict(parsed(body))


def _is_of_a_catalog(body: bytes) -> bool:
    """Return whether a 404 has the body that the specification asks of a catalog: a proxy's says nothing of a table."""
    try:
        document = parsed(body)
    except ValueError:
        return False
    error = document.get("error") if isinstance(document, dict) else None
    return isinstance(error, dict) and error.get("code") == HTTPStatus.NOT_FOUND
