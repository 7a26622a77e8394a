"""The public names, parameters and types of the package `safewriter` are those of the reference page."""

from __future__ import annotations

import inspect
import re

import safewriter
from safewriter import objects
from safewriter.tables import delta
from scripts.provision.place import ROOT
from scripts.reference import error_tree


def test_the_public_names_are_those_of_the_reference_page() -> None:
    """The page lists each new name, and no removed one."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    documented = re.findall(r"auto(?:class|function):: safewriter\.(\w+)$", page, re.MULTILINE)
    errors = re.findall(r"\w+Error\b", error_tree())
    assert safewriter.__all__ == sorted([*documented, *errors])


def test_every_public_name_is_there_and_documented() -> None:
    """Each can be imported and has a docstring."""
    for package in (safewriter, objects, delta):
        for name in package.__all__:
            assert inspect.getdoc(getattr(package, name)), name


def test_the_block_takes_what_the_documentation_says() -> None:
    """Names and defaults of the parameters are part of the contract."""
    parameters = inspect.signature(safewriter.SafeWriter).parameters

    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "spark": inspect.Parameter.empty,
        "table": inspect.Parameter.empty,
        "format": "delta",
        "step": None,
        "commit_point": "write",
        "checkpoint_bucket": None,
        "warn_before_ms": None,
        "turn": None,
    }


def test_the_package_says_that_it_is_typed() -> None:
    """Type checkers of users read the annotations."""
    assert inspect.getsourcefile(safewriter) is not None
    with open(inspect.getsourcefile(safewriter).replace("__init__.py", "py.typed"), "rb") as marker:  # type: ignore[union-attr] # noqa: PTH123
        assert marker.read() == b""
