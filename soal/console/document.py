"""The JSON documents of `--json`. Keys are in camelCase, as in a job's result (handler/outcome/result.py)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema


class Part(BaseModel):
    """A document with a published schema, or a part of one."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the document whose fields are the attributes of `value` with the same names."""
        return cls.model_validate(value, from_attributes=True)

    def document(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        return self.model_dump(mode="json", by_alias=True)


def document_of(value: Any) -> Any:  # noqa: ANN401 - a dataclass, a collection of them, or a JSON value
    """Return the JSON values of dataclasses."""
    if dataclasses.is_dataclass(value):
        return {to_camel(member.name): document_of(getattr(value, member.name)) for member in dataclasses.fields(value)}
    return [document_of(entry) for entry in value] if isinstance(value, list | tuple) else value


def schema_text(*reports: type[BaseModel]) -> str:
    """Return the published JSON schema of a report; several reports: one definition each."""
    schema = (
        reports[0].model_json_schema(mode="serialization")
        if len(reports) == 1
        else models_json_schema([(report, "serialization") for report in reports])[1]
    )
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"
