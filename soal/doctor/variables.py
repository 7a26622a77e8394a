"""Findings about a function's environment variables, compared with the list in handler/variables.py."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from handler.variables import VARIABLES, Reader, Setter
from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OURS: Final = ("SOAL_", "SW_")


def unknown_variables(names: Iterator[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the names with the prefix SOAL_ or SW_ that SoAL does not know, each with a remedy."""
    listed = [variable.name for variable in VARIABLES]
    unlisted = sorted(name for name in names if name.startswith(_OURS) and name not in listed)
    return {name: _hint(name, listed) for name in unlisted}


def examine_variables(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each SoAL variable that has no effect in the job's function."""
    for name, hint in unknown_variables(variables).items():
        yield Finding("variables", "warn", f"{name} is not a variable of SoAL: nothing reads it", hint)
    for variable in VARIABLES:
        if variable.name not in variables:
            continue
        if variable.setter is Setter.HANDLER:
            detail = f"{variable.name} has no effect: the handler sets it for each job"
            yield Finding("variables", "warn", detail, "remove it")
        elif Reader.JOB not in variable.readers:
            detail = f"{variable.name} has no effect here: the {' and the '.join(variable.readers)} reads it"
            yield Finding("variables", "warn", detail, "remove it")


def _hint(name: str, listed: list[str]) -> str:
    near = difflib.get_close_matches(name, listed, n=1)
    return f"did you mean {near[0]}?" if near else "remove it; the known ones are in docs/reference/settings"
