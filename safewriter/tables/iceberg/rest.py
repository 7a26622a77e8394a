"""The pointer behind a REST catalog: the server checks the requirements of a commit, and writes the metadata itself.

https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from __future__ import annotations

import functools
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.iceberg.metadata import Fence, Held, head_of, table_uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.catalog.rest import RestCatalog
    from requests import Response

    from safewriter.tables.iceberg.name import TableName

__all__ = ["RestPointer"]

_TIMEOUT_S: Final = (5, 30)  # to connect, and to answer: for a commit the server sends several requests to S3
_LOGIN: Final = (HTTPStatus.UNAUTHORIZED, 419)  # the latter is Iceberg's own, for a login that has expired
_SHOWN_MAX: Final = 300


class RestPointer:
    """One table of a server."""

    def __init__(self, name: TableName, opened: Callable[[], RestCatalog]) -> None:
        self._name = name
        self._opened = opened

    def read(self) -> Held | None:
        answer = self._asked("GET", None)
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        return Held(self._metadata(answer), None)

    def commit(self, held: Held, fence: Fence) -> bool:
        answer = self._asked("POST", _request(held.metadata, fence))
        if answer.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            return False
        if head_of(self._metadata(answer), fence.name) != fence.snapshot_id:
            # Nessie accepts each change of references, and makes none:
            # https://github.com/apache/iceberg-python/issues/2828
            raise StoreError(f"{self._name}: the catalog's answer to a commit does not show the tag that it was to add")
        return True

    def _asked(self, method: str, body: dict[str, Any] | None) -> Response:
        catalog = self._opened()
        table = catalog._split_identifier_for_path(self._name.identifier)  # noqa: SLF001 - how this server writes names
        url = catalog.url("namespaces/{namespace}/tables/{table}", **table)
        session = catalog._session  # noqa: SLF001 - it is logged in
        data = None if body is None else json.dumps(body)
        send = functools.partial(session.request, method, url, data=data, timeout=_TIMEOUT_S)
        answer = send()
        if answer.status_code in _LOGIN:
            catalog._refresh_token()  # noqa: SLF001 - as pyiceberg does with its own requests
            answer = send()
        return answer

    def _metadata(self, answer: Response) -> dict[str, Any]:
        if not answer.ok:
            raise StoreError(f"{self._name}: the catalog answers {answer.status_code}: {answer.text[:_SHOWN_MAX]}")
        metadata: dict[str, Any] = parsed(answer.content)["metadata"]
        return metadata


def _request(metadata: dict[str, Any], fence: Fence) -> dict[str, Any]:
    """Return the commit that adds a fence to the table that was read."""
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": table_uuid(metadata)},
            {"type": "assert-ref-snapshot-id", "ref": fence.name, "snapshot-id": None},
        ],
        "updates": [{"action": "set-snapshot-ref", "ref-name": fence.name, **fence.tag}],
    }
