"""SafeWriter sets environment variables for a `with` block, and restores their earlier values at its end."""

from __future__ import annotations

import os

import pytest

from safewriter.environment import variables_set


def test_variables_are_as_before_at_the_end_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that had a value gets it back, any other is deleted; also after an error."""
    monkeypatch.setenv("SOAL_TEST_KEPT", "before")
    monkeypatch.delenv("SOAL_TEST_NEW", raising=False)
    with pytest.raises(ZeroDivisionError), variables_set({"SOAL_TEST_KEPT": "in", "SOAL_TEST_NEW": "in"}):
        assert (os.environ["SOAL_TEST_KEPT"], os.environ["SOAL_TEST_NEW"]) == ("in", "in")
        raise ZeroDivisionError
    assert os.environ["SOAL_TEST_KEPT"] == "before"
    assert "SOAL_TEST_NEW" not in os.environ
