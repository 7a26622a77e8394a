"""SafeWriter's JSON parser refuses texts that are nested too deeply or hold too many values, in documents too."""

from __future__ import annotations

import json

import pytest

from safewriter.errors import UnreadableCheckpointError
from safewriter.parsing import parsed
from safewriter.record.document import Checkpoint
from safewriter.record.marker import Marker
from safewriter.tables.delta.commit import Signature


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, ("[" * 100_000).encode()])
def test_a_text_that_is_nested_too_deeply_is_no_json(text: str | bytes) -> None:
    """It is refused like any other invalid text."""
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed(text)


def test_any_other_text_is_parsed_as_python_does() -> None:
    """With its hook for objects, and its error."""
    assert parsed('{"a": [1, null]}') == {"a": [1, None]}
    assert parsed(b'{"a": 1}', object_hook=sorted) == ["a"]
    with pytest.raises(json.JSONDecodeError):
        parsed("{")


def test_no_document_ends_a_sweep_by_its_depth() -> None:
    """A checkpoint, a marker and a signature that are nested too deeply count as unreadable, or as foreign."""
    body = b"[" * 100_000
    for document in (Checkpoint, Marker):
        with pytest.raises(UnreadableCheckpointError):
            document.from_bytes(body)
    assert Signature.from_text(body.decode()) is None


@pytest.mark.parametrize("text", ["[0, 1, 2]", b"[0, 1, 2]", '{"a": 1, "b": [2]}'])
def test_a_text_of_too_many_values_is_not_parsed(text: str | bytes) -> None:
    """Each value takes many times the memory of its text."""
    assert parsed(text, values_max=3) == parsed(text)
    with pytest.raises(ValueError, match="has more than 2 values"):
        parsed(text, values_max=2)
