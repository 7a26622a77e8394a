"""Set-up installs the programs of a local account (ministack, CDK) once, exactly as they are locked."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.provision import account, npm
from scripts.provision.account import ensure_account
from scripts.provision.place import ROOT, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A clone with what the step reads."""
    for name in (
        "requirements/account.txt",
        "scripts/account/cdk/package.json",
        "scripts/account/cdk/npm-shrinkwrap.json",
    ):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return Place(tmp_path)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of the step, which are not run."""
    commands: list[list[str]] = []
    for module in (account, npm):
        monkeypatch.setattr(module, "run", lambda words, **_: commands.append([str(word) for word in words]))
    monkeypatch.setattr(account, "is_usable", lambda _: True)
    return commands


def test_the_programs_are_installed_once_and_only_as_they_are_locked(place: Place, ran: list[list[str]]) -> None:
    """By their sums, and without a script of any package; the second time there is nothing to do."""
    found = ensure_account(place)

    made, installed, npm = ran
    assert made[1] == "venv"
    assert {"--require-hashes", str(place.requirements / "account.txt")} <= set(installed)
    assert (npm[2], "--ignore-scripts" in npm) == ("ci", True)
    assert found.cdk[-1].startswith(str(place.home))

    ran.clear()
    assert ensure_account(place) == found
    assert ran == []


def test_another_lock_installs_its_part_again(place: Place, ran: list[list[str]]) -> None:
    """The other part stays."""
    ensure_account(place)
    ran.clear()
    (place.root / "scripts/account/cdk/npm-shrinkwrap.json").write_text("{}")

    ensure_account(place)

    assert [words[2] for words in ran] == ["ci"]


def test_a_step_that_was_interrupted_is_done_again(
    place: Place, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half-made environment never looks whole."""
    monkeypatch.setattr(account, "run", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ensure_account(place)
    monkeypatch.setattr(account, "run", lambda words, **_: ran.append([str(word) for word in words]))

    ensure_account(place)

    assert len(ran) == 3
    assert Path(ran[0][0]).name == "uv"
