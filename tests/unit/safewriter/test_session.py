"""The versions of Spark that SafeWriter guards."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from safewriter.errors import UnsupportedError
from safewriter.session import configure_spark
from safewriter.tables.release import check_spark


@pytest.mark.parametrize("version", ["4.1.1", "4.1.4", "4.1.1-amzn-0", "4.1"])
def test_a_version_of_the_right_spark_is_taken(version: str) -> None:
    """Whatever a vendor adds to it."""
    check_spark(version)


@pytest.mark.parametrize("version", ["3.5.6", "4.0.1", "4.10.0", "4.2.0", "14.1.0", "unknown"])
def test_another_spark_is_refused_before_the_session_is_made(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names both versions, and the builder is untouched."""
    monkeypatch.setattr("pyspark.__version__", version)
    builder: Any = MagicMock()
    with pytest.raises(UnsupportedError, match=rf"writes of Spark 4\.1, and this is Spark {version}; nothing was"):
        configure_spark(builder)
    assert builder.mock_calls == []
