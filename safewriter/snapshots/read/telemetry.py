"""Metrics of a reader, by the API of OpenTelemetry. Imports nothing of it: the caller gives a meter, or none."""

from __future__ import annotations

import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Telemetry"]

_NAME: Final = "soal.snapshot"


class _Aged(Protocol):
    @property
    def age_s(self) -> float: ...


class Telemetry:
    """The instruments of one reader: `soal.snapshot.read.duration`, `….fetch.size`, `….refresh.count`, `….age`.

    `meter`: an `opentelemetry.metrics.Meter`. An error of an instrument is the caller's.
    """

    def __init__(self, meter: Any, reader: _Aged) -> None:  # noqa: ANN401 - of a package that need not be there
        self._reads = meter.create_histogram(
            f"{_NAME}.read.duration", unit="s", description="The duration of a call that reads keys"
        )
        self._fetched = meter.create_counter(
            f"{_NAME}.fetch.size", unit="By", description="The bytes of shards that were fetched"
        )
        self._refreshes = meter.create_counter(f"{_NAME}.refresh.count", description="The calls of refresh")
        this = weakref.ref(reader)
        # Observed by the meter's thread; a reader that is gone has no age.
        meter.create_observable_gauge(
            f"{_NAME}.age", [_age_of(this)], unit="s", description="The seconds since the last look at the pointer"
        )

    @contextmanager
    def reading(self, call: str) -> Iterator[None]:
        """Record a call, and how it ended. An attribute has few values: the number of keys is none."""
        began, error = time.perf_counter(), ""
        try:
            yield
        except Exception as caught:
            error = type(caught).__name__
            raise
        finally:
            told = {"call": call} | ({"error.type": error} if error else {})
            self._reads.record(time.perf_counter() - began, told)

    def fetched(self, size: int) -> None:
        """Record a shard that was fetched."""
        self._fetched.add(size)

    def refreshed(self, *, changed: bool) -> None:
        """Record a look at the pointer."""
        self._refreshes.add(1, {"changed": changed})


def _age_of(this: weakref.ref[_Aged]) -> Callable[[Any], Iterable[Any]]:
    def age(_: Any) -> Iterable[Any]:  # noqa: ANN401 - as above
        from opentelemetry.metrics import Observation  # whoever calls this has it

        reader = this()
        return () if reader is None else (Observation(reader.age_s),)

    return age
