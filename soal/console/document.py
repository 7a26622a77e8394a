"""The JSON documents of `--json`. Keys are in camelCase, as in a job's result."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from pydantic.alias_generators import to_camel

from handler.json_document import JsonDocument


class Part(JsonDocument):
    """A document with a published schema, or a part of one."""

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the document whose fields are the attributes of `value` with the same names."""
        return cls.model_validate(value, from_attributes=True)


def document_of(value: Any) -> Any:  # noqa: ANN401 - a dataclass, a collection of them, or a JSON value
    """Return the JSON values of dataclasses."""
    if dataclasses.is_dataclass(value):
        return {to_camel(member.name): document_of(getattr(value, member.name)) for member in dataclasses.fields(value)}
    return [document_of(entry) for entry in value] if isinstance(value, list | tuple) else value
