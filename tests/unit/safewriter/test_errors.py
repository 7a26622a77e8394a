from __future__ import annotations

import re

import pytest

import safewriter
from safewriter import errors
from safewriter.errors import SafeWriterError, SettingError

CLASSES = [getattr(errors, name) for name in errors.__all__]
EXIT_CODES = {"TurnSkippedError": 0, "UsageError": 2, "TryAgainError": 75, "TurnLostError": 75, "DeadlineError": 124}
RETRYABLE = {"TryAgainError", "TurnLostError", "DeadlineError"}


@pytest.mark.parametrize("error", CLASSES)
def test_each_error_says_how_a_process_should_end(error: type[SafeWriterError]) -> None:
    """A skipped turn is 0, usage 2, try again 75, the deadline 124, all else 1; three kinds may be tried again."""
    lineage = [parent.__name__ for parent in error.__mro__]

    assert issubclass(error, SafeWriterError)
    assert error.exit_code == next((EXIT_CODES[name] for name in lineage if name in EXIT_CODES), 1)
    assert error.retryable == bool(RETRYABLE.intersection(lineage))


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Names, exit codes and parents of the drawing are those of the classes, and none is missing."""
    drawn = re.findall(r"^    ([│ ]*)(?:[├└]── )?(\w+Error)\b(?:.*exit (\d+))?", errors.__doc__ or "", re.MULTILINE)
    parents = {0: "Exception"}
    for indent, name, code in drawn:
        depth = 0 if name == "SafeWriterError" else 1 + len(indent) // 4
        found = getattr(errors, name)
        assert found.__base__.__name__ == parents[depth]
        assert not code or found.exit_code == int(code)
        parents[depth + 1] = name
    assert sorted(name for _, name, _ in drawn) == sorted(errors.__all__)


def test_a_setting_error_names_the_setting() -> None:
    """Both for people and for programs."""
    error = SettingError("SW_X", "is bad")

    assert (error.name, str(error)) == ("SW_X", "SW_X: is bad")


def test_every_error_is_public() -> None:
    """Whoever catches one imports it from the package."""
    assert set(errors.__all__) <= set(safewriter.__all__)
