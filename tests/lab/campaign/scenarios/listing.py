"""The scenarios by subject: each test of the listed files is a scenario."""

from __future__ import annotations

from typing import Final

from tests.lab.campaign.selection import is_selected

__all__ = ["FILES", "SUBJECTS", "is_chosen", "subject_of"]

_SCENARIOS: Final[dict[str, tuple[str, ...]]] = {
    "catalogs": ("tests/faults/test_iceberg_kills.py",),
    "durable": ("tests/faults/test_durable_kills.py",),
    "invocation": (
        "tests/faults/test_invocation_kills.py",
        "tests/faults/test_long_kills.py",
        "tests/integration/handler/test_deadlines.py",
        "tests/integration/handler/test_out_of_memory.py",
        "tests/integration/cli/test_until_done.py",
    ),
    "recovery": ("tests/faults/test_recovery_kills.py", "tests/faults/test_iceberg_recovery_kills.py"),
    "reuse": ("tests/faults/test_reuse_kills.py",),
    "snapshot": ("tests/faults/test_snapshot_kills.py",),
    "stream": ("tests/faults/test_stream_kills.py",),
    "turn": ("tests/contract/coordination/test_leases.py", "tests/contract/coordination/test_exclusion.py"),
    "writers": (
        "tests/faults/test_kills.py",
        "tests/faults/test_two_writers.py",
        "tests/faults/test_parallel_appends.py",
        "tests/faults/test_delivered_twice.py",
    ),
}
SUBJECTS: Final = tuple(_SCENARIOS)
FILES: Final = tuple(file for files in _SCENARIOS.values() for file in files)


def subject_of(test: str) -> str:
    """Return the subject of a test, given pytest's name. Raises `ValueError` for any other text."""
    file = test.partition("::")[0]
    for subject, files in _SCENARIOS.items():
        if file in files and file != test:
            return subject
    raise ValueError(f"{test!r} is no scenario; one is {FILES[0]}::test_…")


def is_chosen(test: str, select: str) -> bool:
    """Return whether the words select a scenario, by its subject or its name."""
    return is_selected(f"{subject_of(test)} {test}", select)
