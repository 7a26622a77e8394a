"""docs/SETTINGS.md, the reference page of the variables: `python -m scripts.settings_page` writes it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.variables import VARIABLES, Setter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from handler.variables import Variable

__all__ = ["PAGE", "page"]

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "SETTINGS.md"
_HEAD: Final = """\
# Settings: the variables

Made from `handler/variables.py` by `.venv/bin/python -m scripts.settings_page`; do not edit it.

The stack sets variables from its context keys (`cdk deploy -c key=value`; the
[README](../README.md#deploy) has all keys); elsewhere they are set by hand. An empty variable counts as not
set for the handler. A value that cannot be used is refused before anything starts, by the variable's name.
"""
_SECTIONS: Final = (
    (
        Setter.OWNER,
        "Yours to set",
        "What has no context key is for other functions, for sessions of your own, and for the command line.",
    ),
    (Setter.STACK, "Set by the stack", "From what the stack has made. Without the stack they are yours to set."),
    (Setter.PLATFORM, "Set by Lambda, the image or the emulator", "The handler reads them as it finds them."),
    (
        Setter.HANDLER,
        "Told to the job by the handler",
        "A script may read them. A function's own variable of such a name has no effect.",
    ),
)


def page() -> str:
    """Return the page's text."""
    parts = [_HEAD]
    for setter, title, remark in _SECTIONS:
        rows = _table(variable for variable in VARIABLES if variable.setter is setter)
        parts.append(f"## {title}\n{remark}\n\n{rows}")
    return "\n".join(parts)


def _table(variables: Iterable[Variable]) -> str:
    rows = ["| variable | context key | values | default | read by | meaning |", "|---|---|---|---|---|---|"]
    rows += [f"| {' | '.join(_cells(variable))} |" for variable in variables]
    return "\n".join(rows) + "\n"


def _cells(variable: Variable) -> tuple[str, ...]:
    return (
        f"`{variable.name}`",
        "" if variable.key is None else f"`{variable.key}`",
        variable.values + _bounds(variable),
        f"`{variable.default}`" if variable.default else "",
        ", ".join(variable.readers),
        variable.meaning,
    )


def _bounds(variable: Variable) -> str:
    if variable.most is not None:
        return f", {variable.least} to {variable.most}"
    return "" if variable.least is None else f", at least {variable.least}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
