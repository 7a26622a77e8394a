"""The roles of the plain stack on S3, and the stored requests of job, handler and sweeper."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.support.cloud import ROOT, kept
from tests.support.guarded_s3 import Need

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CHECKPOINTS", "FOLDERS", "JOB", "LAKE", "REQUESTS", "ROLES", "SCRIPTS", "SWEEPER", "kept_needs", "kinds"]

_STACK = kept()
JOB, SWEEPER = "AKIAJOB", "AKIASWEEPER"
"""Access keys of the two functions."""
ROLES = {JOB: _STACK.access("RuntimeJobRole").single(), SWEEPER: _STACK.access("SweeperSweepRole").single()}
CHECKPOINTS, SCRIPTS = (
    next(name.lower() for name in _STACK.of_type("S3::Bucket") if name.startswith(kind))
    for kind in ("Checkpoints", "Scripts")
)
LAKE = "my-lake"
FOLDERS = {"checkpoints", "open", "leases", "notes", "audit", "runs", "results", "eventlogs", "cancels", "locks"}
"""Of the checkpoint bucket, as docs/concepts/protocol.md and handler/runs/store.py name them."""
REQUESTS = ROOT / "tests/unit/infra/requests.json"
"""Written by tests/integration/infra/test_permissions.py, whose scenario takes half a minute."""
_DRAWN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{10,}|(?<=part-)\d+|\d{4}-\d\d-\d\dT[\d:.]+Z")


def kept_needs() -> list[Need]:
    """Return the permissions that one request of each kind needs."""
    return [Need(*each) for each in json.loads(REQUESTS.read_text())]


def kinds(needs: Iterable[Need]) -> list[Need]:
    """Return one of each kind, with random and counted parts of the keys removed."""
    found = {
        Need(
            need.role,
            need.action,
            _DRAWN.sub("0", need.resource).replace(f":::{_DRAWN.sub('0', CHECKPOINTS)}", f":::{CHECKPOINTS}"),
            None if need.prefix is None else _DRAWN.sub("0", need.prefix),
        )
        for need in needs
    }
    return sorted(found, key=lambda need: (need.role, need.action, need.resource, need.prefix or ""))
