"""The stack's roles may read and change Glue tables of the named databases only, and delete none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

BASE = "arn:aws:glue:us-east-1:123456789012"


@pytest.mark.parametrize("action", ["glue:GetTable", "glue:CreateTable", "glue:UpdateTable"])
def test_a_job_uses_tables_of_the_named_databases(plain: Synthesised, full: Synthesised, action: str) -> None:
    """A job has no access to other databases, or to any database if none is named."""
    assert full.access("RuntimeJobRole").may(action, f"{BASE}:table/sales/t")
    assert not full.access("RuntimeJobRole").may(action, f"{BASE}:table/hr/t")
    assert not plain.access("RuntimeJobRole").may(action, f"{BASE}:table/sales/t")


def test_the_sweeper_fences_in_the_named_databases(plain: Synthesised, full: Synthesised) -> None:
    """The sweeper reads and changes a table's entry; it creates none and requests nothing else."""
    assert not full.access("SweeperSweepRole").may("glue:GetDatabase", f"{BASE}:database/sales")
    for action in ("glue:GetTable", "glue:UpdateTable"):
        assert full.access("SweeperSweepRole").may(action, f"{BASE}:table/sales/t")
        assert not full.access("SweeperSweepRole").may(action, f"{BASE}:table/hr/t")
        assert not plain.access("SweeperSweepRole").may(action, f"{BASE}:table/sales/t")
    assert not full.access("SweeperSweepRole").may("glue:CreateTable", f"{BASE}:table/sales/t")


@pytest.mark.parametrize("action", ["glue:DeleteTable", "glue:DeleteDatabase", "glue:PutResourcePolicy"])
def test_nothing_of_the_catalog_can_be_deleted(full: Synthesised, action: str) -> None:
    """A job creates and changes tables; only people delete them."""
    for resource in ("catalog", "database/sales", "table/sales/t"):
        assert not full.access("RuntimeJobRole").may(action, f"{BASE}:{resource}")
