"""On the lock services S3 and DynamoDB a free turn costs three requests, and a lock's server is probed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.lock_services import S3, DynamoDB

if TYPE_CHECKING:
    from tests.support.lock_arena import Arena


def requests(arena: Arena) -> list[str]:
    """Take a turn, and return its requests to the server."""
    assert isinstance(arena.service, S3 | DynamoDB)
    arena.service.server.wire.clear_trace()
    with arena.coordinator("job", lease_s=60).turn():
        pass
    return [exchange.operation for exchange in arena.service.server.trace()]


def test_a_turn_that_nobody_contends_costs_three_requests(on_wire: Arena) -> None:
    """One read, one grant, one release; renewals are additional."""
    on_wire.settle_server()

    read, write = ("GetObject", "PutObject") if isinstance(on_wire.service, S3) else ("GetItem", "PutItem")

    assert requests(on_wire) == [read, write, write]
    assert requests(on_wire) == [read, write, write]


def test_a_server_is_probed_once_for_a_lock(on_wire: Arena) -> None:
    """The lock's record lists the server, so jobs of other processes do not probe it again."""
    first, second = requests(on_wire), requests(on_wire)

    assert len(first) > 30
    assert len(second) == 3
