"""All scripts of the tier, by name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.selection import is_selected
from tests.lab.campaign.wrong import families
from tests.lab.campaign.wrong.script import declared

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.script import Script

__all__ = ["SCRIPTS", "script_of", "selected"]


def _listed() -> dict[str, Script]:
    for module in iter_modules(families.__path__):
        import_module(f"{families.__name__}.{module.name}")
    found = {one.name: one for one in declared()}
    if len(found) != len(declared()):
        raise AssertionError("two scripts have one name")
    return found


SCRIPTS: Final = _listed()


def selected(select: str) -> list[str]:
    """Return the names that the words select."""
    return [name for name in SCRIPTS if is_selected(name, select)]


def script_of(name: str) -> Script:
    """Return the script of a name. Raises `ValueError`."""
    try:
        return SCRIPTS[name]
    except KeyError:
        raise ValueError(f"{name!r} is no script; one is {next(iter(SCRIPTS))}") from None
