"""Locks in a table whose service does not answer, but a proxy does. A real table: tests/contract/coordination."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.record import Record
from safewriter.objects.store import StoreError
from tests.support.page import page

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backend import Backend


@pytest.mark.parametrize(
    "asks",
    [
        lambda backend: backend.read("lock"),
        lambda backend: backend.write(Record("lock"), None),
        lambda backend: list(backend.locks()),
    ],
    ids=["read", "write", "locks"],
)
def test_a_page_of_a_proxy_is_no_lock_and_no_write(
    monkeypatch: pytest.MonkeyPatch, asks: Callable[[Backend], object]
) -> None:
    """Otherwise each of two jobs would find the lock free, and take it."""
    monkeypatch.setattr("safewriter.coordination.backends.dynamodb.PAUSES_S", (0.0,))
    with page() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
        with pytest.raises(StoreError, match="not from DynamoDB") as raised:
            asks(open_backend("dynamodb://locks"))
    assert not raised.value.denied
