from __future__ import annotations

import json
import tracemalloc

import pytest

from safewriter.errors import UnreadableCheckpointError
from safewriter.parsing import parsed, space_bytes, whole
from safewriter.record.document import Checkpoint
from safewriter.record.marker import Marker
from safewriter.tables.delta.commit import Signature


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, ("[" * 100_000).encode()])
def test_a_text_that_is_nested_too_deeply_is_no_json(text: str | bytes) -> None:
    """It is refused like any other that cannot be read."""
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed(text)


def test_any_other_text_is_parsed_as_python_does() -> None:
    """With its hook for objects, and its error."""
    assert parsed('{"a": [1, null]}') == {"a": [1, None]}
    assert parsed(b'{"a": 1}', object_hook=sorted) == ["a"]
    with pytest.raises(json.JSONDecodeError):
        parsed("{")


def test_no_document_ends_a_sweep_by_its_depth() -> None:
    """A checkpoint, a marker and a signature that are nested too deeply are unreadable, or somebody else's."""
    body = b"[" * 100_000
    for document in (Checkpoint, Marker):
        with pytest.raises(UnreadableCheckpointError):
            document.from_bytes(body)
    assert Signature.from_text(body.decode()) is None


@pytest.mark.parametrize(
    "each",
    [
        "{}",
        "[]",
        '{"a":1}',
        '{"a":{"b":[]}}',
        '"ab"',
        '"\U0001f600"',
        "1.5",
        "123456789012345678901234567890",
        "true",
        '{"%d":"%d"}',
        '"%040d"',
    ],
)
def test_values_take_no_more_memory_than_their_text_tells(each: str) -> None:
    """A settler refuses by it what would end its process, before anything is parsed."""
    text = "[" + ",".join(each.replace("%d", str(n)).replace("%040d", f"{n:040}") for n in range(20_000)) + "]"
    for body in (text, text.encode()):
        tracemalloc.start()
        value = parsed(body)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(value) == 20_000
        # A body in bytes is decoded first, so that its text stands beside it.
        assert peak <= space_bytes(body) + len(text) * 4


@pytest.mark.parametrize("value", [2**63, -(2**63), 1.0, float("inf"), float("nan"), True, "1", None, []])
def test_a_number_is_whole_and_has_64_bits_or_is_none(value: object) -> None:
    """What Delta writes as a long is nothing else."""
    with pytest.raises(ValueError, match="whole number"):
        whole(value)
    assert whole(2**63 - 1) == 2**63 - 1
