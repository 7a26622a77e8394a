"""The campaign's list of named mutants (mutants.toml) fits the code, and each one has tests; bad ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.campaign.mutants.listing import Mutant, MutantError, listed

ROOT = Path(__file__).parents[5]


def mutant(**changes: object) -> Mutant:
    found = {
        "name": "no-fence",
        "guard": "It fences.",
        "file": "code.py",
        "old": "fence()",
        "new": "",
        "tests": ["tests/test_code.py"],
    }
    return Mutant.model_validate({**found, **changes})


def written(folder: Path, text: str) -> Path:
    path = folder / "mutants.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("one", listed(), ids=lambda one: one.name)
def test_each_mutant_fits_the_code_and_its_tests_are_there(one: Mutant, tmp_path: Path) -> None:
    """One that was written for code that has changed or gone says nothing any more."""
    changed = tmp_path / one.file
    changed.parent.mkdir(parents=True)
    changed.write_text((ROOT / one.file).read_text(encoding="utf-8"), encoding="utf-8")
    one.write(tmp_path)
    assert changed.read_text(encoding="utf-8") != (ROOT / one.file).read_text(encoding="utf-8")
    for target in one.tests:
        path, _, test = target.partition("[")[0].partition("::")
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8") if test else (ROOT / path).is_file()


def test_python_and_java_have_enough_mutants() -> None:
    """Of guard, handler and log store."""
    is_java = [one.is_java for one in listed()]
    assert is_java.count(True) >= 10
    assert is_java.count(False) >= 22
    assert {one.file.partition("/")[0] for one in listed()} == {"handler", "image", "safewriter"}


@pytest.mark.parametrize(("text", "count"), [("", 0), ("fence()\nfence()\n", 2)])
def test_text_that_the_file_does_not_hold_once_names_the_mutant(tmp_path: Path, text: str, count: int) -> None:
    """Nothing is changed then."""
    (tmp_path / "code.py").write_text(text, encoding="utf-8")
    with pytest.raises(MutantError, match=rf"mutant no-fence: code.py holds {count} times, not once: fence\(\)"):
        mutant().write(tmp_path)
    assert (tmp_path / "code.py").read_text(encoding="utf-8") == text


def test_a_file_that_is_gone_names_the_mutant(tmp_path: Path) -> None:
    """As text that is gone does."""
    with pytest.raises(MutantError, match=r"mutant no-fence: there is no file code\.py"):
        mutant().write(tmp_path)


@pytest.mark.parametrize("change", [{"name": "fence"}, {"guard": ""}, {"old": ""}, {"tests": []}, {"more": 1}])
def test_a_mutant_that_says_too_little_or_too_much_is_refused(change: dict[str, object]) -> None:
    """A name of one word says of no guard that it is gone."""
    with pytest.raises(ValueError, match="1 validation error"):
        mutant(**change)


def test_each_name_stands_once(tmp_path: Path) -> None:
    """A result is known by it."""
    text = "".join(
        f'[[mutant]]\nname = "no-fence"\nguard = "{guard}"\nfile = "a"\nold = "b"\nnew = ""\ntests = ["c"]\n'
        for guard in ("one", "two")
    )
    with pytest.raises(MutantError, match="mutants with one name: no-fence"):
        listed(written(tmp_path, text))
