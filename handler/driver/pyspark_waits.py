"""Spare a script two waits of PySpark's that serve nothing in a job.

PySpark asks its testing package whether NumPy is installed, at the first call to Java with an argument. That package
imports pandas, unittest and more: most of a second, where pandas is installed. And the end of a SparkContext waits for
a thread that looks up each half second.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import partialmethod
from types import ModuleType
from typing import Any, Final

__all__ = ["install"]

_PACKAGE: Final = "pyspark.testing"
_UTILS: Final = f"{_PACKAGE}.utils"
_POLL_S: Final = 0.02


class _Later(ModuleType):
    """Stands for a module until somebody uses more of it than `known`."""

    def __init__(self, name: str, **known: object) -> None:
        super().__init__(name)
        self.__dict__.update(known)

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        for name in (_PACKAGE, _UTILS):
            if isinstance(sys.modules.get(name), _Later):
                del sys.modules[name]
        return getattr(importlib.import_module(self.__name__), attribute)


def install() -> None:
    """Put the testing package off, and let the thread look up more often."""
    from pyspark.accumulators import AccumulatorTCPServer

    AccumulatorTCPServer.serve_forever = partialmethod(  # type: ignore[method-assign, assignment]
        AccumulatorTCPServer.serve_forever, poll_interval=_POLL_S
    )
    package = importlib.util.find_spec("pyspark")
    if package is None or package.submodule_search_locations is None or _PACKAGE in sys.modules:
        return
    folders = [f"{folder}/testing" for folder in package.submodule_search_locations]
    utils = _Later(_UTILS, have_numpy=importlib.util.find_spec("numpy") is not None)
    sys.modules.update({_PACKAGE: _Later(_PACKAGE, __path__=folders, utils=utils), _UTILS: utils})
