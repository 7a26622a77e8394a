"""The journey on an AWS profile: its own settings, its budget, and the parts that it can have."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from scripts.demonstration.account import deploying, playing, profile
from soal.console.problem import Problem
from soal.console.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    path.write_text("[profile mine]\nregion = eu-west-1\n[profile bare]\noutput = json\n", encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(path))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    return path


def test_a_profile_has_its_own_region(config: Path) -> None:
    """Not that of the caller's variables; without an endpoint of its own there is none."""
    found = profile.variables("mine")

    assert (found["AWS_PROFILE"], found["AWS_REGION"], found["AWS_CONFIG_FILE"]) == ("mine", "eu-west-1", str(config))
    assert "AWS_ENDPOINT_URL" not in found


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize(("name", "said"), [("bare", "no region"), ("missing", "missing")])
def test_a_profile_that_cannot_be_used_is_refused(name: str, said: str) -> None:
    """With what to do."""
    with pytest.raises(Problem, match=said) as caught:
        profile.variables(name)

    assert "aws configure" in caught.value.todo


def test_the_budget_grows_with_the_time_of_the_jobs() -> None:
    """An hour of jobs at the price that docs/guides/deploying.md names, and an hour of the rest."""
    assert "about 0.20 $ (60 minutes" in profile.budget([1800, 1800])
    assert "about 0.02 $ (0 minutes" in profile.budget([])


def test_the_parts_that_a_profile_cannot_have_are_named_with_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are played, in the same order."""
    played = MagicMock()
    monkeypatch.setattr(profile, "play", played)
    monkeypatch.setattr(deploying, "first_result", MagicMock())
    console, stage = Screen(file=io.StringIO()), MagicMock()

    playing.play_on_profile(console, MagicMock(), "mine", None, agreed=True)

    (_, begin), *others = played.call_args.args[4]
    begin(stage)
    left_out = [act for act in playing._ACTS if act.only_here]
    assert [call.args[1] for call in stage.line.call_args_list] == [
        f"{act.play.__name__}: {act.only_here}" for act in left_out
    ]
    assert [act for _, act in others] == [act.play for act in playing._ACTS if not act.only_here]
    assert left_out
