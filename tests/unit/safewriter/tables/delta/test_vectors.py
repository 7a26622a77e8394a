"""The undo on Delta finds the file of a deletion vector by the protocol's rule, or refuses an unknown form."""

from __future__ import annotations

import pytest

from safewriter.tables.delta.vectors import relative_key


def test_an_inline_vector_has_no_file() -> None:
    """It is in the log itself."""
    assert relative_key({"storageType": "i", "pathOrInlineDv": "anything"}) is None


@pytest.mark.parametrize("where", ["ab^-aqEH.-t@S}K{vb[*k^", "^-aqEH.-t@S}K{vb[*k^"])
def test_a_vector_s_file_is_named_by_its_uuid(where: str) -> None:
    """The example of Delta's protocol, with and without a random prefix, which is a folder."""
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"

    assert relative_key({"storageType": "u", "pathOrInlineDv": where}) == (f"ab/{name}" if len(where) > 20 else name)


@pytest.mark.parametrize(
    "vector",
    [
        {"storageType": "p", "pathOrInlineDv": "s3://lake/vector.bin"},
        {"storageType": "u", "pathOrInlineDv": "short"},
        {"storageType": "u", "pathOrInlineDv": "\u00e9" * 20},
        {"storageType": "u", "pathOrInlineDv": " " * 20},
        {},
    ],
)
def test_any_other_vector_is_refused(vector: dict[str, str]) -> None:
    """It is unknown whether its file exists, so no file that needs it is put back."""
    with pytest.raises(ValueError, match="a deletion vector"):
        relative_key(vector)
