"""Backends of the wire: moto, with a separate store for each emulated S3.

moto keeps all buckets of a process in one module variable, so two servers in one process would silently share them.
This module replaces that variable by a switch: during a request it refers to the store of the server that received it.

moto dates the start of every multipart upload to 2010, so a clean-up by age would abort all; `Beginnings` corrects it.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import moto.s3.models
import moto.s3.responses
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server import werkzeug_app
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import FakeKey, FakeMultipart, S3BackendDict
from moto.utilities.utils import PARTITION_NAMES
from werkzeug.test import run_wsgi_app

from soal.testing.s3.exchange import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from soal.testing.s3.exchange import Request

werkzeug_app.DISABLE_GLOBAL_CORS = True  # type: ignore[attr-defined] # moto exports no names of this module
"""Otherwise each answer would allow any web page to read it."""
_ORIGINAL: Final = moto.s3.models.s3_backends
_current: contextvars.ContextVar[Any] = contextvars.ContextVar("s3_store", default=_ORIGINAL)
_switching = threading.Lock()
_ID: Final = re.compile(rb"<UploadId>([^<]+)</UploadId>")
_UPLOAD: Final = re.compile(rb"<Upload>.*?</Upload>", re.DOTALL)
_INITIATED: Final = re.compile(rb"(?<=<Initiated>)[^<]+")
_KNOWN_MAX: Final = 100_000


class _Switch:
    """Replaces moto's variable. Outside our requests it acts as the original."""

    def __getitem__(self, account: str) -> Any:  # noqa: ANN401 - moto has no types
        return _current.get()[account]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return getattr(_current.get(), name)


class Store:
    """All buckets of one emulated S3."""

    def __init__(self) -> None:
        _install()
        self._backends = _backends()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Make moto use this store within the block, in this thread."""
        token = _current.set(self._backends)
        try:
            yield
        finally:
            _current.reset(token)

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Put objects into a bucket, by their keys."""
        backend = self._backends[DEFAULT_ACCOUNT_ID]["aws"]
        for key, body in objects.items():
            backend.put_object(bucket, key, body)

    def reset(self) -> None:
        """Delete all buckets and free their memory.

        moto's own reset would close the objects of all stores, since moto keeps them in one list.
        """
        old, self._backends = self._backends, _backends()
        things = list(_things(old))
        for thing in things:
            thing.dispose()
        ids = {id(thing) for thing in things}
        classes: tuple[Any, ...] = (FakeKey, FakeMultipart)
        for tracked in classes:
            tracked.instances_tracked[:] = [
                thing
                for thing in tracked.instances_tracked
                if id(thing) not in ids and not getattr(thing, "disposed", False)
            ]
        registered: list[Any] = S3BackendDict._instances  # type: ignore[misc] # noqa: SLF001 - kept there for good
        if old in registered:
            registered.remove(old)


def _backends() -> Any:  # noqa: ANN401 - moto has no types
    return S3BackendDict(
        moto.s3.models.S3Backend,
        service_name="s3",
        use_boto3_regions=False,
        additional_regions=PARTITION_NAMES,
    )


def _things(backends: Any) -> Iterator[Any]:  # noqa: ANN401 - moto has no types
    for account in backends.values():
        for backend in account.values():
            for bucket in backend.buckets.values():
                yield from itertools.chain.from_iterable(bucket.keys.getlist(key) for key in bucket.keys)
                for upload in bucket.multiparts.values():
                    yield upload
                    yield from upload.parts.values()


def _install() -> None:
    with _switching:
        if not isinstance(moto.s3.models.s3_backends, _Switch):
            switch = _Switch()
            # moto.s3 keeps the original: the flask application reads the routes from it.
            moto.s3.models.s3_backends = switch  # type: ignore[assignment]
            moto.s3.responses.s3_backends = switch  # type: ignore[assignment, attr-defined]


class Beginnings:
    """Records the start of each upload, and corrects the listings."""

    def __init__(self) -> None:
        self._at: dict[bytes, bytes] = {}

    def reply(self, request: Request, reply: Reply) -> Reply:
        """Return the reply with the uploads' true start times."""
        if request.operation == "CreateMultipartUpload" and (match := _ID.search(reply.body)) is not None:
            if len(self._at) < _KNOWN_MAX:
                self._at[match[1]] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()).encode()
        elif request.operation == "ListMultipartUploads":
            return replace(reply, body=_UPLOAD.sub(self._dated, reply.body))  # of the same length
        return reply

    def _dated(self, upload: re.Match[bytes]) -> bytes:
        match = _ID.search(upload[0])
        at = None if match is None else self._at.get(match[1])
        return upload[0] if at is None else _INITIATED.sub(at, upload[0])


class Backend(Protocol):
    """An S3 without faults. The wire sends requests as they come, so several threads call `answer` at once."""

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
    """Caches the backend of each host: moto's dispatcher scans all its services at each request, half of its time."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - moto's own
        super().__init__(*arguments)
        self._services: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:  # noqa: ANN401 - moto's own
        if host not in self._services:
            self._services[host] = super().get_backend_for_host(host)
        return self._services[host]


class Moto:
    """moto in this process, with a separate store and true start times of uploads.

    It applies one request at a time: moto checks a condition and then acts without a lock, and lists a dict that
    another thread may change.
    """

    def __init__(self) -> None:
        self._applying = threading.Lock()
        self._app = _Dispatcher(create_backend_app)
        self._store = Store()
        self._beginnings = Beginnings()

    def answer(self, request: Request) -> Reply:
        with self._applying, self._store.in_use():
            chunks, status, headers = run_wsgi_app(self._app, request.environ, buffered=True)
            reply = Reply(int(status.split(" ", 1)[0]), tuple(headers), b"".join(chunks))
            return self._beginnings.reply(request, reply)

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        self._store.fill(bucket, objects)

    def reset(self) -> None:
        self._store.reset()
