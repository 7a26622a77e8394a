"""Synthesis refuses more places and names than the roles' policies can hold, and says how many fit."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import TYPE_CHECKING

import pytest

from infra.app import main, new_app
from tests.unit.infra.conftest import FULL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def synthesised(folder: Path, **context: str) -> tuple[int, str]:
    """Return the exit code and the output of the app."""
    told = io.StringIO()
    with redirect_stderr(told):
        code = main(new_app(context={**FULL, **context}, outdir=str(folder)))
    return code, told.getvalue()


def places(number: int) -> str:
    return ",".join(f"acme-analytics-lake-production-{one:02d}/tables/gold" for one in range(number))


@pytest.mark.parametrize(
    ("context", "told"),
    [
        ({"data": places(60)}, "context data=60 of them: they make "),
        (
            {"glue_databases": ",".join(f"analytics_gold_database_{one:03d}" for one in range(250))},
            "glue_databases=250",
        ),
    ],
)
def test_what_iam_would_refuse_is_refused_at_synthesis(context: dict[str, str], told: str, tmp_path: Path) -> None:
    """A deployment would fail half-way, after minutes."""
    code, said = synthesised(tmp_path, **context)

    assert code == 2
    assert told in said
    assert "more than IAM takes; about " in said


@pytest.mark.parametrize(
    "context",
    [
        {"data": places(30)},
        {"glue_databases": ",".join(f"analytics_gold_database_{one:02d}" for one in range(80))},
    ],
)
def test_what_fits_is_taken(context: dict[str, str], tmp_path: Path) -> None:
    """The stack splits a long list into statements that fit into a policy."""
    assert synthesised(tmp_path, **context) == (0, "")
