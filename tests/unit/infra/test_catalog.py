from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

BASE = "arn:aws:glue:us-east-1:123456789012"


@pytest.mark.parametrize("action", ["glue:GetTable", "glue:CreateTable", "glue:UpdateTable"])
def test_a_job_uses_tables_of_the_named_databases(plain: Synthesised, full: Synthesised, action: str) -> None:
    """Other databases, and every database where none is named, are closed."""
    assert full.access("RuntimeJobRole").may(action, f"{BASE}:table/sales/t")
    assert not full.access("RuntimeJobRole").may(action, f"{BASE}:table/hr/t")
    assert not plain.access("RuntimeJobRole").may(action, f"{BASE}:table/sales/t")


def test_the_sweeper_fences_in_the_named_databases(plain: Synthesised, full: Synthesised) -> None:
    """It reads a table's entry and changes it; it makes none, and asks for nothing else."""
    assert not full.access("SweeperSweepRole").may("glue:GetDatabase", f"{BASE}:database/sales")
    for action in ("glue:GetTable", "glue:UpdateTable"):
        assert full.access("SweeperSweepRole").may(action, f"{BASE}:table/sales/t")
        assert not full.access("SweeperSweepRole").may(action, f"{BASE}:table/hr/t")
        assert not plain.access("SweeperSweepRole").may(action, f"{BASE}:table/sales/t")
    assert not full.access("SweeperSweepRole").may("glue:CreateTable", f"{BASE}:table/sales/t")


@pytest.mark.parametrize("action", ["glue:DeleteTable", "glue:DeleteDatabase", "glue:PutResourcePolicy"])
def test_nothing_of_the_catalog_can_be_deleted(full: Synthesised, action: str) -> None:
    """A job makes and changes tables; what goes is for people to say."""
    for resource in ("catalog", "database/sales", "table/sales/t"):
        assert not full.access("RuntimeJobRole").may(action, f"{BASE}:{resource}")
