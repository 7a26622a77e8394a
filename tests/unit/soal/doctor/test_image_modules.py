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
    """The modules at the top of the local function's packages; none if it was not made."""
    site = site_of(home_of(default_home(), variant))
    return set() if site is None else {found.name for found in pkgutil.iter_modules([str(site)])}


def locked(name: str) -> set[str]:
    text = (REQUIREMENTS / name).read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^([\w.-]+)==", text))


def test_the_table_is_what_the_local_function_has() -> None:
    """The modules of the slim variant's packages, each of them and no other."""
    assert sorted(IN_IMAGE) == sorted(installed("slim"))


def test_full_has_what_its_list_adds() -> None:
    """The modules of the packages that only the variant full has, also where it was not set up."""
    files = [file for name in locked("full.txt") - locked("runtime.txt") for file in distribution(name).files or ()]
    tops = {file.parts[0] for file in files if file.suffix == ".py"}

    assert {top.removesuffix(".py") for top in tops} == modules_of("full") - modules_of("slim")


def test_full_has_what_its_local_function_has() -> None:
    """Each module of its packages and no other. A test that runs beside this one may be setting it up."""
    if not is_complete(default_home()):
        pytest.skip("the variant full is not set up here: scripts/setup --variant full")
    assert sorted(modules_of("full")) == sorted(installed("full"))


@pytest.mark.parametrize("module", ["handler", "scripts", "rich", "click"])
def test_what_a_job_cannot_import(module: str) -> None:
    """The handler's own packages, and the libraries that are left out of the image."""
    assert module not in modules_of("full")
