"""Shards in SlateDB, a database whose files are objects: its manifests and sorted tables are below `db_url`.

An incomplete shard is never used, so SlateDB's write-ahead log, which would write all rows twice, is off. The rows are
durable when `flush` returns, and nothing writes below `db_url` after `seal`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from safewriter.environment import variables_set
from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore, custom_endpoint, s3_client
from safewriter.snapshots.checks import check_number
from safewriter.snapshots.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from pathlib import Path

__all__ = ["SlateDbAdapter", "SlateDbFactory"]

_T = TypeVar("_T")

_SETTINGS: Final = {
    "wal_enabled": False,
    "max_unflushed_bytes": 256 << 20,  # SlateDB's default is 1 GiB, for each shard in progress
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlateDbFactory:
    """Opens a SlateDB database for each shard: `WriteConfig(adapter_factory=SlateDbFactory())`.

    Credentials and region come from the tasks' environment variables, those that boto3 also reads, or from a role of
    the container or the machine. SlateDB does not read AWS's configuration files. Raises `MissingPackageError` if the
    package is not installed.

    Parameters
    ----------
    timeout_s
        The timeout of each call of the database, in seconds. SlateDB itself retries requests without end, whatever the
        error: no connection, no such bucket, no permission.
    endpoint
        The endpoint of S3; default: that of boto3 in the driver's environment, else AWS.
    """

    timeout_s: float = 300.0
    endpoint: str | None = field(default_factory=custom_endpoint)

    def __post_init__(self) -> None:
        check_number("timeout_s", self.timeout_s, above=0)
        if find_spec("slatedb") is None:
            raise MissingPackageError(
                "shards in SlateDB need the package slatedb, on the driver and on the executors; install soal[slatedb]"
            )

    def __call__(self, *, db_url: str, local_dir: Path) -> SlateDbAdapter:  # noqa: ARG002 - it keeps no files
        return SlateDbAdapter(db_url, self.endpoint, self.timeout_s)


class SlateDbAdapter:
    """One shard. Raises `TimeoutError` for a call that does not end, and SlateDB's own errors."""

    def __init__(self, db_url: str, endpoint: str | None, timeout_s: float) -> None:
        from slatedb.uniffi import DbBuilder, ObjectStore, Settings

        self._url, self._endpoint, self._timeout_s = db_url, endpoint, timeout_s
        settings = Settings.default()
        for name, value in _SETTINGS.items():
            settings.set(name, json.dumps(value))
        with variables_set(_variables_of(endpoint)):
            store = ObjectStore.resolve(db_url)
        builder = DbBuilder("", store)
        builder.with_settings(settings)
        self._runner: asyncio.Runner | None = asyncio.Runner()
        try:
            self._db: Any = self._called("open", builder.build())
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(Exception):  # the first error says more
                self.close()

    def write_batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        from slatedb.uniffi import WriteBatch, WriteOptions

        batch, count = WriteBatch(), 0
        for key, value in pairs:
            batch.put(key, value)
            count += 1
        if count:
            self._called("write", self._db.write_with_options(batch, WriteOptions(await_durable=False)))

    def flush(self) -> None:
        from slatedb.uniffi import FlushOptions, FlushType

        self._called("flush", self._db.flush_with_options(FlushOptions(flush_type=FlushType.MEM_TABLE)))

    def seal(self) -> None:
        self.close()

    def db_bytes(self) -> int:
        where = Location.parse(self._url)
        store = S3ObjectStore(s3_client(endpoint=self._endpoint), where.bucket, where.key)
        return sum(entry.size for entry in store.list(""))

    def close(self) -> None:
        """Shut the database down, which makes all rows durable."""
        if self._runner is not None:
            try:
                self._called("shutdown", self._db.shutdown())
            finally:
                self._end()

    def _called(self, verb: str, call: Coroutine[Any, Any, _T]) -> _T:
        if self._runner is None:
            call.close()
            raise ValueError(f"{verb} {self._url}: the shard is closed")
        try:
            return self._runner.run(asyncio.wait_for(call, self._timeout_s))
        except TimeoutError as error:
            raise TimeoutError(
                f"{verb} {self._url}: SlateDB has not answered for {self._timeout_s:g} s. It repeats its requests"
                " whatever the reason: check the endpoint, the bucket, the credentials and their permissions"
            ) from error

    def _end(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def _variables_of(endpoint: str | None) -> dict[str, str]:
    """Return the variables by which SlateDB finds the endpoint; boto3's are different."""
    if endpoint is None:
        return {}
    plain = {"AWS_ALLOW_HTTP": "true"} if endpoint.startswith("http://") else {}
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false", **plain}
