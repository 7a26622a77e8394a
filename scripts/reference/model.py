"""A pydantic model as Markdown: its fields, each with meaning, values and default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import BaseModel

__all__ = ["attribute_documents", "definition", "described"]

_TYPES: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
}


def described(model: type[BaseModel], *, parent: str = "", defaults: bool = True) -> Iterable[str]:
    """Return a definition of each field; a field without a description in its model is an error."""
    schema = model.model_json_schema(by_alias=True)
    documents: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        documents |= attribute_documents(owner)
    for name, field in model.model_fields.items():
        alias = field.alias or name
        found = schema["properties"][alias]
        meaning = field.description or documents.get(name)
        if not meaning:
            raise LookupError(f"{model.__module__}.{model.__qualname__}.{name} has no docstring to show")
        notes = [values(found)]
        if defaults and (default := found.get("default")) not in (None, [], {}, ""):
            notes.append(f"default `{json.dumps(default).strip(chr(34))}`")
        if alias in schema.get("required", ()) and defaults:
            notes.append("required")
        yield definition(parent + alias, meaning, notes)


def definition(name: str, meaning: str, notes: Iterable[str]) -> str:
    """Return an entry of a definition list."""
    sentence = meaning.strip().rstrip(".")
    sentence = sentence[:1].upper() + sentence[1:] if not sentence.startswith("`") else sentence
    remark = "; ".join(note for note in notes if note)
    return f"`{name}`\n: {' '.join(sentence.split())}." + (f" *({remark})*" if remark else "")


def attribute_documents(owner: type) -> Mapping[str, str]:
    """Return the docstrings below a class's attributes; none for a class without a source file."""
    if owner.__module__ in {"builtins", "typing", "pydantic.main"}:
        return {}
    found = ModuleAnalyzer.for_module(owner.__module__).find_attr_docs()
    return {name: " ".join(lines).strip() for (scope, name), lines in found.items() if scope == owner.__qualname__}


def values(schema: Mapping[str, Any]) -> str:
    """Return the values that a schema allows, for people; the field's meaning explains a place or an image's URI."""
    if "anyOf" in schema:
        return next(filter(None, (values(each) for each in schema["anyOf"] if each.get("type") != "null")), "")
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
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
