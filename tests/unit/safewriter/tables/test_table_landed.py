"""The facts of a landed commit in any format: impossible counts are unknown, an impossible version is an error."""

from __future__ import annotations

import pytest

from safewriter.tables.table import Landed, UndecidableError


def test_rows_and_bytes_that_no_table_has_are_not_known() -> None:
    """A document with them could not be read."""
    assert Landed(1, 2**63, 2**70) == Landed(1)
    assert Landed(1, 2**63 - 1, 0) == Landed(1, 2**63 - 1, 0)


@pytest.mark.parametrize("version", [2**63, "1", None, 1.0])
def test_a_version_that_no_table_has_decides_nothing(version: int) -> None:
    """The write stays open for its owner."""
    with pytest.raises(UndecidableError, match="the commit's version is not a whole number"):
        Landed(version)
