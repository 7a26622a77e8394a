"""The console's JSON documents have all keys in camelCase, and values unchanged."""

from __future__ import annotations

from dataclasses import dataclass

from soal.console.document import Part, document_of


@dataclass(frozen=True)
class Write:
    write_key: str
    at_ms: int | None = None


@dataclass(frozen=True)
class Run:
    writes: tuple[Write, ...]


class Found(Part):
    older_than_s: int


def test_each_key_is_in_camel_case() -> None:
    """The keys of nested dataclasses and of documents with a schema are in camelCase; values are unchanged."""
    run = Run((Write("sw_1"),))
    assert document_of([run]) == [{"writes": [{"writeKey": "sw_1", "atMs": None}]}]
    assert Found(older_than_s=1).document() == {"olderThanS": 1}
