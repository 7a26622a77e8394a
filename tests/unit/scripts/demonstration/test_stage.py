"""One false claim of the demonstration is shown as false, and fails all of it."""

from __future__ import annotations

import io

from rich.console import Console

from scripts.demonstration.stage import Claims


def test_one_false_claim_spoils_them_all() -> None:
    """A false claim is shown as false, and fails the demonstration."""
    stream = io.StringIO()
    claims = Claims(Console(file=stream, width=80))
    assert not claims.all_hold
    claims.check("one is one", holds=True)
    assert claims.all_hold
    claims.check("one is two", holds=False)
    claims.check("two is two", holds=True)
    assert not claims.all_hold
    assert "✓ one is one" in stream.getvalue()
    assert "✗ NOT TRUE: one is two" in stream.getvalue()
