"""The record of a journey: each claim in the act in which it was made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

from scripts.demonstration.account import record as module
from scripts.demonstration.account.record import Acts, Record, record
from scripts.demonstration.stage import Claim

if TYPE_CHECKING:
    import pytest


def test_each_claim_is_in_its_act() -> None:
    """An act without claims is there, too, and the last one has what comes after it."""
    acts, claims = Acts(), [Claim(text, holds=text != "c") for text in "abcd"]
    numbers = [acts.begin(title, first) for title, first in (("one", 0), ("two", 2), ("three", 2))]

    found = {act.title: [(claim.text, claim.holds) for claim in act.claims] for act in acts.of(claims)}

    assert numbers == [1, 2, 3]
    assert found == {"one": [("a", True), ("b", True)], "two": [], "three": [("c", False), ("d", True)]}


def test_a_record_names_commit_image_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it knows what was run, and reads it back by its schema."""
    monkeypatch.setattr(module, "_MINISTACK", "print('1.5.33')")
    docker = MagicMock()
    docker.read.return_value = "found\n"

    made = record(Acts(), (), docker, MagicMock(emulator=(sys.executable,)), "soal")

    assert (made.image, made.versions["docker"], made.versions["ministack"]) == ("found", "found", "1.5.33")
    assert made.versions["aws-cdk"]
    assert Record.model_validate_json(made.model_dump_json()) == made
