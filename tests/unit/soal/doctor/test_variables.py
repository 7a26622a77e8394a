"""The doctor finds environment variables that nothing reads, and `--env` refuses misspelt ones of SoAL."""

from __future__ import annotations

import pytest

from scripts.local.function import assignments
from soal.console.problem import Problem
from soal.doctor.variables import examine_variables


def test_a_variable_that_nothing_reads_is_found() -> None:
    """A misspelt variable, another function's, and one that the handler sets are found, each with a remedy."""
    found = list(
        examine_variables(
            {
                "SW_CHECKPOINT_BUCKET": "b",
                "SOAL_JIT": "c1",
                "TABLE": "t",
                "SW_WARN_BEFOR_MS": "1",
                "SOAL_ZZZZZZZZ": "1",
                "SOAL_REDRIVE_ATTEMPTS": "3",
                "SOAL_RUN_ID": "x",
            }
        )
    )

    told = [(finding.detail.split()[0], finding.status, finding.remedy) for finding in found]
    assert told == [
        ("SOAL_ZZZZZZZZ", "warn", "remove it; the known ones are in docs/reference/settings"),
        ("SW_WARN_BEFOR_MS", "warn", "did you mean SW_WARN_BEFORE_MS?"),
        ("SOAL_REDRIVE_ATTEMPTS", "warn", "remove it"),
        ("SOAL_RUN_ID", "warn", "remove it"),
    ]


def test_a_local_function_is_not_given_a_misspelt_variable() -> None:
    """`--env` accepts any variable of the job, and of SoAL only existing ones."""
    assert assignments(["TABLE=t", "SOAL_JIT=c1"]) == {"TABLE": "t", "SOAL_JIT": "c1"}
    with pytest.raises(Problem, match="SOAL_JITT") as caught:
        assignments(["SOAL_JITT=c1"])
    assert caught.value.todo == "did you mean SOAL_JIT?"
