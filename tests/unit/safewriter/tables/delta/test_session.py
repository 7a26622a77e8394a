from __future__ import annotations

import pytest

from safewriter.tables.delta.session import is_append_only
from safewriter.tables.session import TableState

# What talks to a JVM is tested with one: tests/integration/safewriter.


@pytest.mark.parametrize(("value", "append_only"), [("true", True), ("false", False), (None, False)])
def test_a_table_may_be_append_only(value: str | None, append_only: object) -> None:
    """The property decides, not the feature."""
    properties = {} if value is None else {"delta.appendOnly": value}

    assert is_append_only(TableState(3, "id", ("appendOnly",), properties)) is append_only
