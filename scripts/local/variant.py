"""The homes of the image's variants, checked before a function runs in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.spark.missing_dependencies import SLIM
from scripts.provision.variant import is_complete
from soal.console.problem import Problem
from soal.home import Home, home_of

if TYPE_CHECKING:
    from handler.spark.missing_dependencies import Variant

__all__ = ["home_of_variant"]


def home_of_variant(home: Home, variant: Variant) -> Home:
    """Return the home that a function of this variant has on this machine. Raises `Problem` if set-up has not made it,
    or not to its end, or if it has lost something since.
    """
    found = Home(home_of(home.path, variant))
    if not found.python.is_file():
        problem = f"{found.path} has no packages of the image's variant {variant}"
    elif variant != SLIM and not is_complete(home.path):
        problem = f"{found.path}, the image's variant {variant}, is half-made or out of date"
    else:
        return found
    raise Problem(problem, todo=f"make it: scripts/setup --variant {variant}")
