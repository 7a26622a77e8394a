"""The product's variables, from their list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.variables import VARIABLES, Setter
from scripts.reference.model import definition

if TYPE_CHECKING:
    from handler.variables import Variable

__all__ = ["variables"]

_SECTIONS: Final = (
    (
        Setter.OWNER,
        "Set by the function's owner",
        "The stack sets those with a context key. Set them by hand elsewhere: in Spark sessions, for the command line.",
    ),
    (Setter.STACK, "Set by the stack", "The stack knows their values. Without the stack, the owner sets them."),
    (Setter.PLATFORM, "Set by Lambda, the image or the emulator", "The handler takes their values as they are."),
    (
        Setter.HANDLER,
        "Set by the handler for the job",
        "A script may read them. The handler ignores a function's own variable of such a name.",
    ),
)


def variables() -> str:
    """Return every variable, in sections by its setter."""
    return "\n\n".join(
        f"## {title}\n\n{remark}\n\n" + "\n\n".join(_entry(one) for one in VARIABLES if one.setter is setter)
        for setter, title, remark in _SECTIONS
    )


def _entry(variable: Variable) -> str:
    notes = [
        variable.values + _bounds(variable),
        f"default `{variable.default}`" if variable.default else "",
        f"context key `{variable.key}`" if variable.key is not None else "",
        f"read by {', '.join(variable.readers)}",
    ]
    return definition(variable.name, variable.meaning, notes)


def _bounds(variable: Variable) -> str:
    if variable.most is not None:
        return f", {variable.least} to {variable.most}"
    return "" if variable.least is None else f", at least {variable.least}"
