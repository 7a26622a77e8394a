"""A reader records metrics with a given meter, and without one imports and records nothing."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.read.reader import SnapshotReader
from tests.support.snapshots import PREFIX
from tests.unit.safewriter.snapshots.conftest import ROWS

if TYPE_CHECKING:
    from tests.unit.safewriter.snapshots.conftest import World


class Meter:
    """Makes instruments with the names and the calls of OpenTelemetry's, and keeps what they get."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float, dict[str, Any]]] = []
        self.gauges: dict[str, Any] = {}

    def create_histogram(self, name: str, unit: str = "", description: str = "") -> Any:
        return self._instrument("record", name, unit, description)

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Any:
        return self._instrument("add", name, unit, description)

    def create_observable_gauge(self, name: str, callbacks: Any, unit: str = "", description: str = "") -> None:
        assert unit
        assert description
        self.gauges[name] = callbacks

    def _instrument(self, call: str, name: str, unit: str, description: str) -> Any:
        assert description

        def told(amount: float, attributes: dict[str, Any] | None = None) -> None:
            assert unit or amount == 1
            self.told.append((name.removeprefix("soal.snapshot."), amount, attributes or {}))

        return type("Instrument", (), {call: staticmethod(told)})


def test_reads_fetches_and_refreshes_are_recorded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its attributes; an error has its type, and the age is told when it is asked for."""
    sizes = {shard.db_id: shard.db_bytes for shard in world.source.manifest(world.publish("r")).shards}
    meter = Meter()
    reader = SnapshotReader(PREFIX, open_store=world.bucket.opened, meter=meter)
    with reader:
        assert reader.get(1) == b"1"
        reader.multi_get(iter(ROWS))
        with pytest.raises(KeyRangeError):
            reader.get(-1)
        reader.refresh()
    calls = [told for name, _, told in meter.told if name == "read.duration"]
    assert calls == [
        {"call": "get"},
        {"call": "multi_get"},
        {"call": "get", "error.type": "KeyRangeError"},
    ]
    assert sum(size for name, size, _ in meter.told if name == "fetch.size") == sum(sizes.values())
    assert [told for name, _, told in meter.told if name == "refresh.count"] == [{"changed": False}]
    api = ModuleType("opentelemetry.metrics")
    api.Observation = float  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry", ModuleType("opentelemetry"))
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", api)
    ((age,),) = meter.gauges.values()
    (told,) = age(None)
    assert 0 <= told < 3600
    del reader
    assert list(age(None)) == []


def test_a_pickled_reader_has_no_meter(world: World) -> None:
    """A meter belongs to its process."""
    world.publish("r")
    with SnapshotReader(PREFIX, open_store=world.bucket.opened, meter=Meter()) as reader:
        again, rest = reader.__reduce__()
        assert rest == ()
        assert again.func is SnapshotReader
        assert "meter" not in again.keywords
