"""The stack's CloudWatch dashboard shows only metrics that handler or sweeper emit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.support.metrics import NAMESPACE, emitted

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def test_the_dashboard_shows_metrics_that_somebody_writes(plain: Synthesised) -> None:
    """The handler or the sweeper emits every SoAL metric on the page."""
    body = plain.resolved(plain.the("CloudWatch::Dashboard")["DashboardBody"])

    shown = set(re.findall(rf'\["{NAMESPACE}","(\w+)"', body))

    assert len(shown) > 15
    assert shown <= emitted()
