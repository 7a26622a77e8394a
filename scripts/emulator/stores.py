"""A store of its own for each emulated S3.

moto keeps all buckets of a process in one module variable, so two servers in one process would silently share them.
Here that variable becomes a switch: during a request it stands for the store of the server that got the request.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import threading
from typing import TYPE_CHECKING, Any, Final

import moto.s3.models
import moto.s3.responses
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import FakeKey, FakeMultipart, S3BackendDict
from moto.utilities.utils import PARTITION_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Store"]

_ORIGINAL: Final = moto.s3.models.s3_backends
_current: contextvars.ContextVar[Any] = contextvars.ContextVar("s3_store", default=_ORIGINAL)
_switching = threading.Lock()


class _Switch:
    """Replaces moto's variable; outside of a request of ours it acts as the original."""

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
        """Let moto work on this store within the block, in this thread."""
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
        """Forget every bucket and give its memory back.

        moto's own reset would close the objects of all stores, since it keeps track of them in one list.
        """
        old, self._backends = self._backends, _backends()
        own = list(_things(old))
        for thing in own:
            thing.dispose()
        gone = {id(thing) for thing in own}
        classes: tuple[Any, ...] = (FakeKey, FakeMultipart)
        for tracked in classes:
            tracked.instances_tracked[:] = [
                thing
                for thing in tracked.instances_tracked
                if id(thing) not in gone and not getattr(thing, "disposed", False)
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
            # moto.s3 itself keeps the original: the flask application looks there for the routes.
            moto.s3.models.s3_backends = switch  # type: ignore[assignment]
            moto.s3.responses.s3_backends = switch  # type: ignore[assignment, attr-defined]
