"""SafeWriter's errors each have an exit code and a place in the documented tree, and setting errors name theirs."""

from __future__ import annotations

import pickle
import re

import pytest

from safewriter import errors
from safewriter.errors import SafeWriterError, SettingError
from safewriter.snapshots.errors import PublishConflictError, PublishCurrentError, ShardWriteError

CLASSES = [one for one in vars(errors).values() if isinstance(one, type) and one.__module__ == errors.__name__]
EXIT_CODES = {
    "TurnSkippedError": 0,
    "UsageError": 2,
    "TryAgainError": 75,
    "TurnLostError": 75,
    "StoreError": 75,
    "DeadlineError": 124,
}
RETRYABLE = {"TryAgainError", "TurnLostError", "StoreError", "DeadlineError"}


@pytest.mark.parametrize("error", CLASSES)
def test_each_error_says_how_a_process_should_end(error: type[SafeWriterError]) -> None:
    """A skipped turn is 0, usage 2, try again 75, the deadline 124, all else 1; four kinds may be tried again."""
    lineage = [parent.__name__ for parent in error.__mro__]

    assert issubclass(error, SafeWriterError)
    assert error.exit_code == next((EXIT_CODES[name] for name in lineage if name in EXIT_CODES), 1)
    assert error.retryable == bool(RETRYABLE.intersection(lineage))


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Names, exit codes and parents in the drawing match the classes, and none is missing."""
    drawn = re.findall(r"^    ([│ ]*)(?:[├└]── )?(\w+Error)\b(?:.*exit (\d+))?", errors.__doc__ or "", re.MULTILINE)
    parents = {0: "Exception"}
    for indent, name, code in drawn:
        depth = 0 if name == "SafeWriterError" else 1 + len(indent) // 4
        found = getattr(errors, name)
        assert found.__base__.__name__ == parents[depth]
        assert not code or found.exit_code == int(code)
        parents[depth + 1] = name
    assert sorted(name for _, name, _ in drawn) == sorted(error.__name__ for error in CLASSES)


def test_an_error_passes_from_process_to_process() -> None:
    """A pool of processes, a queue or Spark pickles it: type, message and members are the same on the other side."""
    given: list[SafeWriterError] = [
        SettingError("SW_X", "is bad"),
        errors.BlockOpenError(),
        errors.StoreError("no", denied=True),
        ShardWriteError("no", db_id=1, attempt="a", db_url="s3://lake/p", rows_written=2),
        PublishConflictError("no", manifest_ref=None),
        PublishCurrentError("no", manifest_ref="s3://lake/m"),
    ]
    for error in given:
        other = pickle.loads(pickle.dumps(error))  # noqa: S301 - bytes of this line
        assert (type(other), other.args, vars(other)) == (type(error), error.args, vars(error))


def test_a_setting_error_names_the_setting() -> None:
    """Both for people and for programs."""
    error = SettingError("SW_X", "is bad")

    assert (error.name, str(error)) == ("SW_X", "SW_X: is bad")
