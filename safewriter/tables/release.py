"""The release of Spark that SafeWriter guards."""

from __future__ import annotations

import re
from typing import Final

from safewriter.errors import UnsupportedError

__all__ = ["check_pyspark", "check_spark"]

_SPARK: Final = "4.1"
"""The log store calls Spark classes whose names differ in other releases."""


def check_pyspark() -> None:
    """Check the PySpark of this Python. Raises `UnsupportedError`."""
    import pyspark

    check_spark(pyspark.__version__)


def check_spark(version: str) -> None:
    """Raise `UnsupportedError` if this is not a version of Spark 4.1, such as `4.1.1` or a vendor's `4.1.1-amzn-0`."""
    if re.match(rf"{re.escape(_SPARK)}(?!\d)", version) is None:
        raise UnsupportedError(
            f"SafeWriter guards writes of Spark {_SPARK}, and this is Spark {version}; nothing was written. Run the job"
            f" on a platform with Spark {_SPARK}, or write without SafeWriter"
        )
