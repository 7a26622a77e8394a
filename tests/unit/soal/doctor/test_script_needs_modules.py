"""The doctor's table of Python modules in the image equals the installed packages of each variant."""

from __future__ import annotations

import pkgutil
import re
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handler.spark.installation import default_home
from scripts.provision.python_env import is_complete
from soal.doctor.script_needs import IN_IMAGE, modules_of
from soal.home import home_of, site_of

if TYPE_CHECKING:
    from handler.spark.missing_dependencies import Variant

REQUIREMENTS = Path(__file__).parents[4] / "requirements"


def installed(variant: Variant) -> set[str]:
    """Return the top-level modules of the local function's packages; empty without a set-up."""
    site = site_of(home_of(default_home(), variant))
    return set() if site is None else {found.name for found in pkgutil.iter_modules([str(site)])}


def locked(name: str) -> set[str]:
    text = (REQUIREMENTS / name).read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^([\w.-]+)==", text))


def test_the_table_is_what_the_local_function_has() -> None:
    """The table lists exactly the modules of the slim variant's packages."""
    assert sorted(IN_IMAGE) == sorted(installed("slim"))


def test_full_has_what_its_list_adds() -> None:
    """The variant full has the modules that its list adds, even where it was not set up."""
    files = [file for name in locked("full.txt") - locked("runtime.txt") for file in distribution(name).files or ()]
    tops = {file.parts[0] for file in files if file.suffix == ".py"}

    assert {top.removesuffix(".py") for top in tops} == modules_of("full") - modules_of("slim")


def test_full_has_what_its_local_function_has() -> None:
    """The variant full has exactly the modules of its packages. A concurrent test may be setting it up."""
    if not is_complete(default_home()):
        pytest.skip("the variant full is not set up here: scripts/setup --variant full")
    assert sorted(modules_of("full")) == sorted(installed("full"))


@pytest.mark.parametrize("module", ["handler", "scripts", "rich", "click"])
def test_what_a_job_cannot_import(module: str) -> None:
    """A job cannot import the handler's packages and the libraries that the image drops."""
    assert module not in modules_of("full")
