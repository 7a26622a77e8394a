"""A pytest plugin: it selects the scenarios without a result, and appends the result of each as a line.

`tests.lab.campaign.scenarios.running` passes its options.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.lab.campaign.record import SCENARIO_RESULTS, ScenarioRecord
from tests.lab.campaign.scenarios.listing import is_chosen, subject_of
from tests.lab.results import append, read

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pytest_addoption", "pytest_configure"]

_SAID_MAX = 4000
_OUT_OF_TIME = "from pytest-timeout"
_FAULTS = "faults"
"""The property in which a test records the number of its faults; one fault by default."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options: the folder of the results, the words that select, and the time after which no test begins."""
    parser.addoption("--campaign-results", required=True, type=Path)
    parser.addoption("--campaign-select", default="")
    parser.addoption("--campaign-until", default=None, type=float)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    folder, select = config.getoption("--campaign-results"), config.getoption("--campaign-select")
    config.pluginmanager.register(_Reporting(folder, select, config.getoption("--campaign-until")))


class _Reporting:
    def __init__(self, folder: Path, select: str, until: float | None) -> None:
        self._results = folder / SCENARIO_RESULTS
        self._select, self._until = select, until
        self._reports: list[pytest.TestReport] = []

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, to be able to stop it."""
        self._session = session

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect tests that are not selected or have a result."""
        done = {one.test for one in read(self._results, ScenarioRecord) if one.tells}
        left = [one for one in items if one.nodeid not in done and is_chosen(one.nodeid, self._select)]
        config.hook.pytest_deselected(items=[one for one in items if one not in left])
        items[:] = left

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Begin no test after the time limit."""
        if self._until is None or time.time() < self._until:
            return None
        self._session.shouldstop = "the time is over"
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append a line after the test's last phase."""
        self._reports.append(report)
        if _is_out_of_time(report):
            # It was stopped wherever it was: the next tests would fail in the session's JVM for that alone.
            self._session.shouldstop = "a test has run out of time"
        if report.when == "teardown":
            append(self._results, _record(self._reports))
            self._reports = []


def _record(phases: Sequence[pytest.TestReport]) -> ScenarioRecord:
    bad = next((one for one in phases if one.failed), None)
    skipped = any(one.skipped for one in phases)
    outcome: Literal["kept", "broken", "skipped", "error"] = "skipped" if skipped else "kept"
    if bad is not None:
        outcome = "broken" if bad.when == "call" and not _is_out_of_time(bad) else "error"
    told = dict(phases[-1].user_properties).get(_FAULTS, 1)
    return ScenarioRecord(
        test=phases[0].nodeid,
        subject=subject_of(phases[0].nodeid),
        outcome=outcome,
        faults=int(told) if isinstance(told, int) else 1,
        seconds=round(sum(one.duration for one in phases), 1),
        error=None if bad is None else bad.longreprtext[-_SAID_MAX:],
    )


def _is_out_of_time(report: pytest.TestReport) -> bool:
    """Return whether pytest-timeout has stopped the test: a slow machine is no broken promise."""
    return report.failed and _OUT_OF_TIME in report.longreprtext
