"""A check that moto's Glue lacks: a change that names a table's version applies only to that version.

Without it, two simultaneous commits of Iceberg's clients, Java and pyiceberg, would both succeed. The emulator applies
requests one at a time, so nothing comes between the check and the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse

if TYPE_CHECKING:
    from moto.core.responses import ActionResult

__all__ = ["check_versions"]

_update_table = GlueResponse.update_table


def check_versions() -> None:
    """Make the Glue of this process check versions from now on."""
    GlueResponse.update_table = _checked_update  # type: ignore[assignment, method-assign]


def _checked_update(response: GlueResponse) -> ActionResult:
    asked = response.parameters
    wanted = asked.get("VersionId")
    table = response.glue_backend.get_table(asked["DatabaseName"], asked["TableInput"]["Name"])
    found = table.as_dict()["VersionId"]
    if wanted not in (None, found):
        raise JsonRESTError("ConcurrentModificationException", f"the version is {found}, not {wanted}")
    return _update_table(response)
