"""The pointer in AWS Glue: a parameter of a table, which has versions."""

from __future__ import annotations

from typing import Any

from safewriter.tables.iceberg.files import FilePointer

__all__ = ["GluePointer"]


class GluePointer(FilePointer):
    """One table, of which Glue changes the version that a change names, and no other."""

    def _location(self) -> str | None:
        return _location(self._found())

    def _swap(self, old: str, new: str) -> bool:
        # As Iceberg does in Java, right before the change: a table that is made anew counts its versions from 0 again.
        found = self._found()
        if _location(found) != old:
            return False
        client: Any = self._opened().glue
        taken = client.meta.service_model.shape_for("TableInput").members  # Glue tells more of a table than it takes
        table = {key: value for key, value in found.items() if key in taken}
        pointer = {"metadata_location": new, "previous_metadata_location": old}
        try:
            client.update_table(
                DatabaseName=self._name.identifier[0],
                TableInput={**table, "Parameters": {**table["Parameters"], **pointer}},
                SkipArchive=True,
                VersionId=found["VersionId"],
            )
        except (client.exceptions.ConcurrentModificationException, client.exceptions.EntityNotFoundException):
            return False  # also after the lost answer to one that boto3 has sent again: whoever reads finds the fence
        return True

    def _found(self) -> dict[str, Any]:
        """Return what Glue tells of the table; nothing if there is none."""
        client: Any = self._opened().glue
        database, table = self._name.identifier
        try:
            found: dict[str, Any] = client.get_table(DatabaseName=database, Name=table)["Table"]
        except client.exceptions.EntityNotFoundException:
            return {}
        return found


def _location(table: dict[str, Any]) -> str | None:
    """Return the metadata file of an Iceberg table; None if there is no table, or one of another format."""
    parameters: dict[str, str] = table.get("Parameters", {})
    return parameters["metadata_location"] if parameters.get("table_type", "").upper() == "ICEBERG" else None
