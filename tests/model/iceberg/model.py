"""The protocol on Iceberg as a system to explore; claiming, markers, supervisor and sweeper are Delta's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tests.model import model, surroundings
from tests.model.iceberg import invariants, publishing, settling
from tests.model.iceberg.surroundings import others

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.state import State

__all__ = ["IcebergModel"]


class IcebergModel(model.Model):
    """The protocol on an Iceberg table, in one setting."""

    table_steps: ClassVar[dict[str, Any]] = {
        **model.STEPS,
        **publishing.STEPS,
        **dict.fromkeys(settling.STEPS, settling.steps),
    }

    def events(self, state: State) -> Iterator[tuple[str, State]]:
        """Return the events that no process causes."""
        yield from surroundings.events(self.setting, state)
        yield from others(self.setting, state)

    def _settled(self, state: State) -> State:
        """Also drop files in the air: no snapshot names them, so `remove_orphan_files` deletes them."""
        air = tuple(request for request in state.air if request.kind != "data")
        return super()._settled(state if air == state.air else state._replace(air=air))

    def untrue(self, state: State) -> str | None:
        """Return the promise about the table that a state breaks, or None."""
        return invariants.untrue(state)
