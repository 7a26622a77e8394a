from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors.exceptions.captured import CapturedException

from handler.driver import pyspark_errors

if TYPE_CHECKING:
    import pytest


def test_showing_an_exception_ends_where_showing_it_fails_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner one is shown as it is; afterwards the next exception is shown in full again."""
    error: Any = CapturedException.__new__(CapturedException)
    error._desc, error._stackTrace = "no number", "at Spark"
    monkeypatch.setattr(CapturedException, "__str__", lambda shown: f"asked, and met: {shown!s}")
    pyspark_errors.install()

    for _ in range(2):
        assert str(error) == "asked, and met: no number\n\nJVM stacktrace:\nat Spark"
