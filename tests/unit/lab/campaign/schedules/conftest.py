from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.campaign.schedules.surroundings import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def simulated() -> Iterator[None]:
    """The code under test takes time, threads and S3 from the simulation."""
    with surroundings():
        yield
