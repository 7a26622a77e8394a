"""The generated parts of the reference pages, made from the models that the code uses, so they cannot differ from it.

`<!-- generated: NAME -->` in a page of docs/reference marks the place of a part; autodoc makes the Python API's rest.
The quotation below a mark is for readers of the source, as code hosts show it: the site has the part in its place.
`python -P -m scripts.reference NAME` prints a part.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
import typer.cli
import typer.main
from sphinx.pycode import ModuleAnalyzer

import safewriter
from handler.outcome.result import ErrorResult, Memory, Result, Timings, Versions, WriteResult
from handler.request.event_fields import FlatDocument
from handler.spark_settings.allowed import ALLOWED
from handler.variables import VARIABLES, Setter
from infra.config import Config
from safewriter import errors as tree
from safewriter.parsing import parsed
from soal.app import app_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import BaseModel

    from handler.variables import Variable

_TYPES: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
}


def described(model: type[BaseModel], *, parent: str = "", defaults: bool = True) -> Iterable[str]:
    """Yield a definition of each field. A field without a description is an error."""
    schema = model.model_json_schema(by_alias=True)
    documents: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        documents |= attribute_documents(owner)
    for name, field in model.model_fields.items():
        alias = field.alias or name
        fields = schema["properties"][alias]
        meaning = field.description or documents.get(name)
        if not meaning:
            raise LookupError(f"{model.__module__}.{model.__qualname__}.{name} has no docstring to show")
        notes = [values(fields)]
        if defaults and (default := fields.get("default")) not in (None, [], {}, ""):
            notes.append(f"default `{json.dumps(default).strip(chr(34))}`")
        if alias in schema.get("required", ()) and defaults:
            notes.append("required")
        yield definition(parent + alias, meaning, notes)


def definition(name: str, meaning: str, notes: Iterable[str]) -> str:
    """Return an entry of a definition list in Markdown."""
    sentence = meaning.strip().rstrip(".")
    sentence = sentence[:1].upper() + sentence[1:] if not sentence.startswith("`") else sentence
    remark = "; ".join(note for note in notes if note)
    return f"`{name}`\n: {' '.join(sentence.split())}." + (f" *({remark})*" if remark else "")


def attribute_documents(owner: type) -> Mapping[str, str]:
    """Return the docstrings below a class's attributes; empty for a class without a source file."""
    if owner.__module__ in {"builtins", "typing", "pydantic.main"}:
        return {}
    documents = ModuleAnalyzer.for_module(owner.__module__).find_attr_docs()
    return {name: " ".join(lines).strip() for (scope, name), lines in documents.items() if scope == owner.__qualname__}


def values(schema: Mapping[str, Any]) -> str:
    """Return the values that a schema allows, as text. A field's description explains a path or an image's URI."""
    if "anyOf" in schema:
        return next(filter(None, (values(form) for form in schema["anyOf"] if form.get("type") != "null")), "")
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = _TYPES.get(schema.get("type", ""), "")
    return ", ".join(filter(None, [kind, _bounds(schema)]))


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f"{least} to {most}"
    if least is not None:
        return f"at least {least}"
    for key, says in (("maxLength", "characters"), ("maxItems", "entries"), ("maxProperties", "entries")):
        if key in schema:
            return f"at most {schema[key]} {says}"
    return ""


# Each command has its own section; typer's lists truncate the summaries.
_LISTS: Final = re.compile(r"^\*\*Commands\*\*:\n\n(?:\* .*\n)+\n", re.MULTILINE)
_HELP: Final = re.compile(r"^\* `(?:-h, )?--help`: .*\n", re.MULTILINE)
_EMPTY: Final = re.compile(r"^\*\*Options\*\*:\n\n(?!\* )", re.MULTILINE)


def commands() -> str:
    """Return a section for each command: usage, arguments, options."""
    command = typer.main.get_command(app_of())
    text = typer.cli.get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="soal"), name="soal")
    _program, _, sections = text.partition("\n## ")
    return _EMPTY.sub("", _HELP.sub("", _LISTS.sub("", f"## {sections}")))


_BECOMES: Final = {variable.key: variable.name for variable in VARIABLES if variable.key is not None}


def context_keys() -> str:
    """Return each key with its meaning, and the variable that it sets if there is one."""
    parts = []
    for name, entry in zip(Config.model_fields, described(Config), strict=True):
        variable = _BECOMES.get(name)
        parts.append(entry + (f" Sets `{variable}`." if variable is not None else ""))
    return "\n\n".join(parts)


def event_fields() -> str:
    """Return the fields of an event's flat form."""
    return "\n\n".join(described(FlatDocument))


def event_settings() -> str:
    """Return the allow-list, grouped by the form of the values."""
    by_form = groupby(sorted(ALLOWED, key=lambda name: (ALLOWED[name].says, name)), key=lambda name: ALLOWED[name].says)
    return "\n".join(f"- **{says}**: {', '.join(f'`{name}`' for name in names)}" for says, names in by_form)


KEPT: Final = Path(__file__).resolve().parents[1] / "docs" / "measurements" / "examples.jsonl"
_VARIANTS: Final = ("slim", "full")


def examples() -> str:
    """Return a row for each example, and the number of tested ones."""
    lines = (parsed(line) for line in KEPT.read_text(encoding="utf-8").splitlines())
    records = {(line["example"], line["variant"]): line for line in lines}
    names = sorted({name for name, _ in records})
    ran = [sum(records[name, variant]["state"] == "SUCCESS" for name in names) for variant in _VARIANTS]
    summary = f"Of {len(names)} examples {ran[0]} run on slim and {ran[1]} on full."
    rows = [f"| `{name}` | {' | '.join(_end(records[name, variant]) for variant in _VARIANTS)} |" for name in names]
    return "\n".join([summary, "", "| example | slim | full |", "|---|---|---|", *rows])


def _end(record: dict[str, Any]) -> str:
    if record["state"] == "SUCCESS":
        return "runs"
    if record["needs"] is not None:
        return f"needs {record['needs']}"
    if record["state"] == "TIMED_OUT":
        return "runs until the deadline ends it"
    message = (record["says"] or "").partition(":")[0].replace("|", "\\|")
    return message if record["is_usage"] else f"{record['state']}: {message}"


def error_tree() -> str:
    """Return the tree of errors in the module's docstring."""
    drawn = [line for line in str(tree.__doc__).splitlines() if line.startswith("    ")]
    return f"```text\n{textwrap.dedent(chr(10).join(drawn))}\n```"


def errors() -> str:
    """Return a directive for each exported error."""
    names = (name for name in safewriter.__all__ if name.endswith("Error"))
    directives = "\n\n".join(f".. autoexception:: safewriter.{name}" for name in names)
    return f"```{{eval-rst}}\n{directives}\n```"


_RESULT_PARTS: Final[Mapping[str, type[BaseModel]]] = {
    "error": ErrorResult,
    "writes[]": WriteResult,
    "timings": Timings,
    "memory": Memory,
    "versions": Versions,
}


def result_fields() -> str:
    """Return each field of the result document, then the fields of each part."""
    sections = ["\n\n".join(described(Result, defaults=False))]
    for name, model in _RESULT_PARTS.items():
        inner = "\n\n".join(described(model, parent=f"{name}.", defaults=False))
        sections.append(f"## `{name}`\n\n{model.__doc__}\n\n{inner}")
    return "\n\n".join(sections)


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
        f"## {title}\n\n{remark}\n\n" + "\n\n".join(_entry(row) for row in VARIABLES if row.setter is setter)
        for setter, title, remark in _SECTIONS
    )


def _entry(variable: Variable) -> str:
    notes = [
        variable.values + _limits(variable),
        f"default `{variable.default}`" if variable.default else "",
        f"context key `{variable.key}`" if variable.key is not None else "",
        f"read by {', '.join(variable.readers)}",
    ]
    return definition(variable.name, variable.meaning, notes)


def _limits(variable: Variable) -> str:
    if variable.most is not None:
        return f", {variable.least} to {variable.most}"
    return "" if variable.least is None else f", at least {variable.least}"


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "event-fields": event_fields,
    "event-settings": event_settings,
    "result-fields": result_fields,
    "variables": variables,
    "context-keys": context_keys,
    "commands": commands,
    "error-tree": error_tree,
    "errors": errors,
    "spark-examples": examples,
}
_MARK: Final = re.compile(r"^<!-- generated: ([a-z-]+) -->\n(?:> .*\n)*", re.MULTILINE)


def filled(page: str) -> str:
    """Return a page's Markdown with its generated parts. Raises `KeyError` with the name of an unknown part."""
    return _MARK.sub(lambda mark: f"{PARTS[mark[1]]()}\n", page)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Print a generated part of the reference pages, in Markdown.")
    asked.add_argument("part", choices=PARTS)
    print(PARTS[asked.parse_args().part]())
