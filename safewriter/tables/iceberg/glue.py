"""The pointer in AWS Glue: a parameter of a table, which has versions."""

from __future__ import annotations

from typing import Any

from safewriter.objects.client import own_answers
from safewriter.tables.iceberg.file_pointer import FilePointer

__all__ = ["GluePointer"]


class GluePointer(FilePointer):
    """One table. Glue makes a change only if it names the table's newest version."""

    def _location(self) -> str | None:
        return _location(self._description())

    def _swap(self, old: str, new: str) -> bool:
        # Read it again right before the change, as Iceberg does in Java: the versions of a recreated table begin at 0.
        description = self._description()
        if _location(description) != old:
            return False
        client: Any = self._glue()
        taken = client.meta.service_model.shape_for("TableInput").members  # get_table returns more than these
        table = {key: value for key, value in description.items() if key in taken}
        pointer = {"metadata_location": new, "previous_metadata_location": old}
        try:
            client.update_table(
                DatabaseName=self.name.identifier[0],
                TableInput={**table, "Parameters": {**table["Parameters"], **pointer}},
                SkipArchive=True,
                VersionId=description["VersionId"],
            )
        except (client.exceptions.ConcurrentModificationException, client.exceptions.EntityNotFoundException):
            return False  # also if boto3 lost an answer and sent it twice: the next read finds the fence
        return True

    def _glue(self) -> Any:  # noqa: ANN401 - a boto3 client
        client: Any = self.opened().glue  # pyiceberg's own, so not made by `client_of`
        return own_answers(client)

    def _description(self) -> dict[str, Any]:
        """Return Glue's description of the table; {} if there is no such table."""
        client: Any = self._glue()
        database, table = self.name.identifier
        try:
            return dict(client.get_table(DatabaseName=database, Name=table)["Table"])
        except client.exceptions.EntityNotFoundException:
            return {}


def _location(table: dict[str, Any]) -> str | None:
    """Return the metadata file of an Iceberg table; None if there is no table, or one of another format."""
    parameters: dict[str, str] = table.get("Parameters", {})
    return parameters["metadata_location"] if parameters.get("table_type", "").upper() == "ICEBERG" else None
