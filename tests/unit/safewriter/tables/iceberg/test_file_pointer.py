"""A fence rewrites an Iceberg metadata file byte for byte but for its own fields, within bounds of memory."""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.file_pointer import FilePointer, _unzipped
from safewriter.tables.iceberg.metadata import FenceTag
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.space import TEXT_MAX_BYTES, one_large
from tests.support.memory_store import MemoryObjectStore

NOW_MS = 1_800_000_000_000
PLACE = "s3a://lake/w/t/metadata"
OLD = f"{PLACE}/00007-8f2b.metadata.json"
FENCE = FenceTag("sw-1", 2**62 + 1, 5)
TAG = '"sw-1":{"snapshot-id":4611686018427387905,"type":"tag","max-ref-age-ms":5}'
ENTRY = f'{{"timestamp-ms":1700000000000,"metadata-file":"{OLD}"}}'


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)


class OneFile(FilePointer):
    """One table of a catalog that is a list of locations."""

    def _location(self) -> str | None:
        return str(self.opened()[-1])

    def _swap(self, old: str, new: str) -> bool:
        assert old == self.opened()[-1]
        self.opened().append(new)
        return True


def one_file(lake: MemoryObjectStore, location: str = OLD) -> OneFile:
    """Return the catalog; it opens no other bucket than the file's."""
    stores = {"s3://lake": lake}
    catalog = [location]
    return OneFile(TableName.parse("c.db.t"), lambda: catalog, stores.__getitem__)


def rewritten(text: str | bytes, location: str = OLD) -> tuple[str, bytes]:
    """Return location and text of the fenced file."""
    lake = MemoryObjectStore()
    lake.put(Location.parse(location).key, text if isinstance(text, bytes) else text.encode())
    pointer = one_file(lake, location)
    held = pointer.read()
    assert held is not None
    assert pointer.commit(held, FENCE)
    written = pointer.opened()[-1]
    found = lake.get(Location.parse(written).key)
    assert found is not None
    return written, found.body


def test_only_three_values_are_written_anew() -> None:
    """Spaces, order, escapes, numbers and unknown fields around them stay, byte for byte."""
    before = """ {
  "format-version" : 9,   "of-tomorrow":[1.10, 1e400, -0.0, 9007199254740993, "\\u00e9\\/\u00e9 \\"refs\\": {"],
  "last-updated-ms" :1700000000000 ,
  "refs" : { "main": {"type":"branch","snapshot-id":4611686018427387905, "more":9007199254740993} } ,
  "sort-orders":[ ],"metadata-log":[{"timestamp-ms":1,"metadata-file":"x"}]\t, "z": {"refs":{}} }
"""
    after = (
        before.replace(":1700000000000 ", ":1800000000000 ")
        .replace(
            '{ "main": {"type":"branch","snapshot-id":4611686018427387905, "more":9007199254740993} }',
            '{"main":{"type":"branch","snapshot-id":4611686018427387905,"more":9007199254740993},' + TAG + "}",
        )
        .replace('"x"}]', '"x"},' + ENTRY + "]")
    )
    assert rewritten(before)[1].decode() == after


def test_fields_that_are_missing_come_last() -> None:
    """Metadata without references has main, as its current snapshot: both references are written."""
    before = '{"last-updated-ms":1700000000000,"current-snapshot-id":4611686018427387905} '
    main = '"main":{"snapshot-id":4611686018427387905,"type":"branch"}'
    after = (
        '{"last-updated-ms":1800000000000,"current-snapshot-id":4611686018427387905'
        f',"refs":{{{main},{TAG}}},"metadata-log":[{ENTRY}]}} '
    )
    assert rewritten(before)[1].decode() == after


@pytest.mark.parametrize(("before_ms", "after_ms"), [(NOW_MS - 1, NOW_MS), (NOW_MS, NOW_MS), (NOW_MS + 1, NOW_MS + 1)])
def test_time_does_not_go_back(before_ms: int, after_ms: int) -> None:
    """Iceberg in Java refuses a table whose last change is older than the latest entry of its log."""
    written = json.loads(rewritten(f'{{"last-updated-ms":{before_ms},"refs":{{}}}}')[1])
    assert written["last-updated-ms"] == after_ms
    assert written["metadata-log"] == [{"timestamp-ms": before_ms, "metadata-file": OLD}]


@pytest.mark.parametrize(
    ("maximum", "known", "kept"), [("3", 1, 2), ("3", 2, 3), ("3", 3, 3), ("3", 9, 3), ("1", 5, 1), ("0", 5, 1)]
)
def test_the_log_is_bounded_as_the_table_says(maximum: str, known: int, kept: int) -> None:
    """The oldest entries go, the newest is the file that this one follows; never is it empty."""
    log = [{"timestamp-ms": n, "metadata-file": f"{n}"} for n in range(known)]
    fields = {"last-updated-ms": 1, "refs": {}, "metadata-log": log}
    fields["properties"] = {"write.metadata.previous-versions-max": maximum}
    written = json.loads(rewritten(json.dumps(fields))[1])["metadata-log"]
    assert written == [*log, {"timestamp-ms": 1, "metadata-file": OLD}][-kept:]


def test_the_log_has_a_hundred_entries_if_the_table_says_nothing() -> None:
    """That is Iceberg's default, and a fence drops the same old entries as a commit of Iceberg's would."""
    log = [{"timestamp-ms": n, "metadata-file": f"{n}"} for n in range(150)]
    written = rewritten(json.dumps({"last-updated-ms": 1, "refs": {}, "metadata-log": log}))[1]
    assert len(json.loads(written)["metadata-log"]) == 100


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("00007-8f2b.metadata.json", "00008"),
        ("99999-8f2b.metadata.json", "100000"),
        ("v7.metadata.json", "00000"),
        ("8f2b.metadata.json", "00000"),
    ],
)
def test_a_file_is_named_as_catalogs_name_it(name: str, number: str) -> None:
    """The next number and a name of its own, in the folder of the one before; 0 if that one has no number."""
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
    names = [rewritten('{"last-updated-ms":1}', f"{PLACE}/{name}")[0] for _ in range(2)]
    assert all(re.fullmatch(rf"{PLACE}/{number}-{uuid}\.metadata\.json", one) for one in names)
    assert names[0] != names[1]


@pytest.mark.parametrize("name", ["00007-8f2b.gz.metadata.json", "v7.metadata.json.gz"])
def test_what_was_compressed_is_compressed(name: str) -> None:
    """Its name has the ending by which every reader recognises gzip."""
    location, body = rewritten(gzip.compress(b'{"last-updated-ms":1700000000000}'), f"{PLACE}/{name}")
    assert location.endswith(".gz.metadata.json")
    assert json.loads(gzip.decompress(body))["last-updated-ms"] == NOW_MS


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "{", '{"a":1', "[1]", '{"a":1}{}', '{"a" 1}', '{"a"1}', '{"a":1 "b":2}', '{"a":1,}', '{,"a":1}',
        '{"a":1{"b":2}', ',"a":1}', '{"a":}', "{1:1}", '{"a\n":1}',
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(text: str) -> None:
    """A truncated file above all."""
    with pytest.raises(StoreError, match="catalog 'c'"):
        rewritten(text)


def test_a_field_that_stands_twice_is_refused() -> None:
    """Readers do not agree on which of the two counts."""
    with pytest.raises(StoreError, match="'refs' stands twice"):
        rewritten('{"refs":{},"last-updated-ms":1,"refs":{}}')


def test_a_file_that_is_not_there_is_an_error() -> None:
    """Without ListBucket the store answers the same for a file that may not be read."""
    with pytest.raises(StoreError, match=re.escape(f"{OLD} is not there, or cannot be read")):
        one_file(MemoryObjectStore()).read()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text() | st.sampled_from(["refs", "metadata-log"]), VALUES, min_size=1)


@given(
    OBJECTS, st.dictionaries(st.sampled_from(["refs", "metadata-log", "new"]), VALUES), st.none() | st.integers(0, 3)
)
def test_any_object_is_changed_in_those_fields_only(
    fields: dict[str, Any], changes: dict[str, Any], indent: int | None
) -> None:
    """Whatever the others hold, and however they are written; Python's parser is the reference."""
    lake = MemoryObjectStore()
    lake.put("t", json.dumps(fields, indent=indent).encode())
    held = one_file(lake, "s3://lake/t").read()
    assert held is not None
    changed = held.version._changed(changes)
    assert list(json.loads(changed.text).items()) == list({**fields, **changes}.items())
    # As if it had been read, so that a second fence can be set on it.
    assert (changed.metadata, changed.spans) == (dict(read := json.loads(changed.text)), spans_of(changed.text, read))


def spans_of(text: str, fields: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return begin and end of each value in a text, found by reading the text."""
    lake = MemoryObjectStore()
    lake.put("t", text.encode())
    held = one_file(lake, "s3://lake/t").read()
    assert held is not None
    assert held.metadata == fields
    spans: dict[str, tuple[int, int]] = held.version.spans
    return spans


class Counted(MemoryObjectStore):
    """A store that counts the reads."""

    reads = 0

    def get(self, key: str, *, max_bytes: int | None = None) -> Any:
        self.reads += 1
        return super().get(key, max_bytes=max_bytes)


def test_a_settler_reads_a_file_once() -> None:
    """Neither the same file again, nor the one that it has written itself; behind the block it keeps nothing."""
    lake = Counted()
    lake.put(Location.parse(OLD).key, b'{"last-updated-ms":1700000000000,"current-snapshot-id":-1}')
    pointer = one_file(lake)
    with one_large(lambda: True):
        held = pointer.read()
        assert held is not None
        assert pointer.read() is held
        assert pointer.commit(held, FENCE)
        fenced = pointer.read()
        assert fenced is not None
        assert fenced.metadata["refs"] == {"sw-1": FENCE.tag}
        assert pointer.commit(fenced, FenceTag("sw-2", 5, 5))
        assert lake.reads == 1
    again = pointer.read()
    assert again is not None
    assert (lake.reads, list(again.metadata["refs"])) == (2, ["sw-1", "sw-2"])


def test_another_file_is_read_although_one_is_kept() -> None:
    """A publication moves the pointer: whatever a settler has read before says nothing about that."""
    lake, new = MemoryObjectStore(), f"{PLACE}/00008-9a.metadata.json"
    lake.put(Location.parse(OLD).key, b'{"refs":{}}')
    lake.put(Location.parse(new).key, b'{"refs":{"sw-1":{}}}')
    pointer = one_file(lake)
    with one_large(lambda: True):
        assert pointer.read() is not None
        pointer.opened().append(new)
        moved = pointer.read()
    assert moved is not None
    assert list(moved.metadata["refs"]) == ["sw-1"]


def test_the_catalog_names_a_file_only_once_it_is_there() -> None:
    """A settler that is killed between the two leaves a table that can be read."""
    there: list[bool] = []

    class Looking(OneFile):
        def _swap(self, old: str, new: str) -> bool:
            there.append(lake.get(Location.parse(new).key) is not None)
            return super()._swap(old, new)

    lake = MemoryObjectStore()
    lake.put(Location.parse(OLD).key, b'{"refs":{},"last-updated-ms":1}')
    places = [OLD]
    pointer = Looking(TableName.parse("c.db.t"), lambda: places, {"s3://lake": lake}.__getitem__)
    held = pointer.read()
    assert held is not None
    assert pointer.commit(held, FENCE)
    assert there == [True]


def test_a_fence_that_was_refused_is_not_kept() -> None:
    """The file is there, and the catalog names another one."""

    class Refusing(OneFile):
        def _swap(self, old: str, new: str) -> bool:
            return False

    lake = MemoryObjectStore()
    lake.put(Location.parse(OLD).key, b'{"refs":{},"last-updated-ms":1}')
    pointer = Refusing(TableName.parse("c.db.t"), lambda: [OLD], {"s3://lake": lake}.__getitem__)
    with one_large(lambda: True):
        held = pointer.read()
        assert held is not None
        assert not pointer.commit(held, FENCE)
        again = pointer.read()
    assert again is not None
    assert again.metadata["refs"] == {}


@pytest.mark.parametrize(
    "body",
    [
        b'{"snapshots":[' + b"{}," * 2_000_000 + b"{}]}",
        b'{"x":"' + b"x" * TEXT_MAX_BYTES + b'"}',
        gzip.compress(b'{"x":"' + b"x" * TEXT_MAX_BYTES + b'"}'),
    ],
    ids=["values", "bytes", "zipped"],
)
def test_a_file_that_would_fill_the_memory_is_not_read(body: bytes) -> None:
    """A writer of one table must not end the settlers of all others; the error says what to do."""
    lake = MemoryObjectStore()
    lake.put(Location.parse(OLD).key, body)

    with pytest.raises(StoreError, match=r"expire snapshots|more than"):
        one_file(lake).read()


def test_a_zipped_file_is_expanded_no_further_than_it_is_read() -> None:
    """A small one may expand to fill the memory."""
    body = gzip.compress(b"x" * (8 * TEXT_MAX_BYTES), 1)
    tracemalloc.start()
    with pytest.raises(StoreError, match="expands to more than"):
        _unzipped(OLD, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * TEXT_MAX_BYTES


def test_a_long_name_takes_no_more_memory_than_its_text() -> None:
    """A zipped file of 30 KB may hold one of 30 MB."""
    lake = MemoryObjectStore()
    lake.put(Location.parse(OLD).key, gzip.compress(b'{"' + b"x" * (4 << 20) + b'":1}'))
    tracemalloc.start()
    assert one_file(lake).read() is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 80 << 20
