"""JSON documents that programs outside read, and their published schemas. Keys are in camelCase."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

__all__ = ["JsonDocument", "schema_text"]


class JsonDocument(BaseModel):
    """A document, or a part of one."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="forbid")

    def document(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        return self.model_dump(mode="json", by_alias=True)


def schema_text(*documents: type[BaseModel]) -> str:
    """Return the published JSON schema of a document; several documents: one definition each."""
    schema = (
        documents[0].model_json_schema(mode="serialization")
        if len(documents) == 1
        else models_json_schema([(document, "serialization") for document in documents])[1]
    )
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"
