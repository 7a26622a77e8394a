"""A check that moto's Glue lacks: a change that names a table's version applies to that version only."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from moto.core.exceptions import JsonRESTError
from moto.core.models import DEFAULT_ACCOUNT_ID

from safewriter.parsing import parsed
from scripts.emulator.exchange import Reply

if TYPE_CHECKING:
    from scripts.emulator.exchange import Request

__all__ = ["refusal"]

_REGION: Final = re.compile(r"Credential=[^/]+/\d+/([^/]+)/glue/")


def refusal(request: Request) -> Reply | None:
    """Return Glue's answer to a change of a version that is no longer the table's newest; None for any other request.

    By this answer Iceberg's clients, in Java and pyiceberg, make one of two simultaneous commits fail.
    """
    region = _REGION.search(request.environ.get("HTTP_AUTHORIZATION", ""))
    if region is None or request.environ.get("HTTP_X_AMZ_TARGET") != "AWSGlue.UpdateTable":
        return None
    from moto.glue.models import glue_backends  # a quarter of a second that an S3 alone does not need

    asked = parsed(request.body())
    wanted, backend = asked.get("VersionId"), glue_backends[DEFAULT_ACCOUNT_ID][region[1]]
    try:
        found = backend.get_table(asked["DatabaseName"], asked["TableInput"]["Name"]).as_dict()["VersionId"]
    except JsonRESTError:
        return None  # moto reports the missing table
    if wanted in (None, found):
        return None
    told = {"__type": "ConcurrentModificationException", "Message": f"the version is {found}, not {wanted}"}
    return Reply(400, (("Content-Type", "application/x-amz-json-1.1"),), json.dumps(told).encode())
