"""The servers that can stand behind the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import run_wsgi_app

from scripts.emulator.exchange import Reply
from scripts.emulator.stores import Store
from scripts.emulator.uploads import Beginnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scripts.emulator.exchange import Request

__all__ = ["Backend", "Moto"]


class Backend(Protocol):
    """An S3 without faults. The wire asks one question at a time."""

    def answer(self, request: Request) -> Reply:
        """Apply a request."""
        ...

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Put objects into a bucket, by their keys."""
        ...

    def reset(self) -> None:
        """Forget all buckets."""
        ...


class _Dispatcher(DomainDispatcherApplication):
    """moto's own looks through the folders of all its services at each request: half of the time of an answer."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - moto's own
        super().__init__(*arguments)
        self._services: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:  # noqa: ANN401 - moto's own
        if host not in self._services:
            self._services[host] = super().get_backend_for_host(host)
        return self._services[host]


class Moto:
    """moto in this process, with a store of its own. moto says 2010 for the start of each upload; here it is true."""

    def __init__(self) -> None:
        self._app = _Dispatcher(create_backend_app)
        self._store = Store()
        self._beginnings = Beginnings()

    def answer(self, request: Request) -> Reply:
        with self._store.in_use():
            chunks, status, headers = run_wsgi_app(self._app, request.environ, buffered=True)
        reply = Reply(int(status.split(" ", 1)[0]), tuple(headers), b"".join(chunks))
        return self._beginnings.told(request, reply)

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        self._store.fill(bucket, objects)

    def reset(self) -> None:
        self._store.reset()
