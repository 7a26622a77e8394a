from __future__ import annotations

import os

import pytest


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes with which the process would have been ended."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes
