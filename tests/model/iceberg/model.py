"""The Iceberg side of the protocol as a system to explore; claiming, markers, supervisor and sweeper are Delta's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from tests.model import model, surroundings
from tests.model.iceberg import ending, invariants, settling, staging
from tests.model.iceberg.surroundings import others

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.state import State

__all__ = ["IcebergModel"]

_OWN: dict[str, Any] = {
    "branch": staging.make_branch,
    "never": ending.never_began,
    "data": staging.data,
    "stage": staging.stage,
    "success": ending.success,
    "put success": ending.put_success,
    "check": ending.check,
    **dict.fromkeys(settling.STEPS, settling.steps),
}


class IcebergModel(model.Model):
    """The protocol on an Iceberg table, in one setting."""

    table_steps: ClassVar[dict[str, Any]] = {**model.STEPS, **_OWN}

    def events(self, state: State) -> Iterator[tuple[str, State]]:
        """Return what may happen without any process."""
        yield from surroundings.events(self.setting, state)
        yield from others(self.setting, state)

    def untrue(self, state: State) -> str | None:
        """Return which promise about the table a state breaks, or None."""
        return invariants.untrue(cast("IcebergSetting", self.setting), state)
