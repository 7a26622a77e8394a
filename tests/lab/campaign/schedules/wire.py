"""The way of a request to S3 and back: the time that it takes, and what may hit it there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.lab.campaign.schedules.simulation import SECOND, Killed, simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.campaign.schedules.simulation import Process

__all__ = ["Fault", "Hit", "refusal", "send"]

_FASTEST: Final = 5_000
_TIMEOUT: Final = 5 * SECOND
"""After which the product's client gives an answer up."""


class Fault(StrEnum):
    """What hits a request."""

    LOST = "applied, and the answer is lost"
    LATE = "the client gives up, and S3 applies it much later"
    GONE = "the client gives up, and S3 never sees it"
    BUSY = "503, not applied"
    DENIED = "403, not applied"
    CONFLICT = "409, as to a conditional write, not applied"
    SLOW = "it takes long"
    KILL = "its process is killed before S3 applies it"
    KILL_LATE = "its process is killed, and S3 applies it much later"
    KILL_AFTER = "its process is killed when S3 has applied it"
    FREEZE = "its process stands still before it sends it"
    FREEZE_AFTER = "its process stands still when S3 has applied it"


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault, its time in microseconds, and how many requests of the same kind it hits, one after the other."""

    fault: Fault
    time: int = 0
    count: int = 1


_REFUSALS: Final[dict[Fault | None, tuple[int, str]]] = {
    Fault.BUSY: (503, "SlowDown"),
    Fault.DENIED: (403, "AccessDenied"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
}
_UNHEARD: Final = {Fault.KILL, Fault.KILL_LATE, Fault.GONE, Fault.LATE}


def refusal(status: int, code: str, operation: str) -> ClientError:
    """Return boto3's error for an answer of S3."""
    response: Any = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


def send(operation: str, kind: str, key: str, apply: Callable[[], Any]) -> Any:
    """Send a request of the running process, and return its answer or raise its error. `apply`: what S3 does."""
    world = simulation()
    try:
        answer = _sent(operation, kind, apply)
    except BaseException as error:
        world.tell(f"{operation} {key}: {str(error) or type(error).__name__}")
        raise
    world.tell(f"{operation} {key}")
    return answer


def _sent(operation: str, kind: str, apply: Callable[[], Any]) -> Any:
    world = simulation()
    world.check_alive()
    process = world.actor.process
    hit = process.faults.get((kind, process.sent[kind]))
    process.sent[kind] += 1
    there, back = _latency(process), _latency(process)
    fault, time = (None, 0) if hit is None else (hit.fault, hit.time)
    if fault is Fault.FREEZE:
        world.freeze(process, time)
        world.sleep(0)
    elif fault is Fault.SLOW:
        fault, there = (Fault.LATE, there) if time > _TIMEOUT else (None, there + time)
    if fault in _REFUSALS:
        world.sleep(there + back)
        raise refusal(*_REFUSALS[fault], operation)
    if fault in _UNHEARD:
        _give_up(apply, fault, time)
    is_good, told = _answer(apply, fault, time, there, back)
    if not is_good:
        raise told
    return told


def _give_up(apply: Callable[[], Any], fault: Fault | None, time: int) -> None:
    """Send a request whose answer nobody gets."""
    world = simulation()
    if fault in (Fault.LATE, Fault.KILL_LATE):
        world.at(time, lambda: _applied(apply))
    if fault in (Fault.KILL, Fault.KILL_LATE):
        world.kill(world.actor.process)
        raise Killed
    world.sleep(_TIMEOUT)
    raise ReadTimeoutError(endpoint_url="s3")


def _answer(apply: Callable[[], Any], fault: Fault | None, time: int, there: int, back: int) -> tuple[bool, Any]:
    """Send a request, and wait for its answer: whether it is none of S3's errors, and what it is."""
    world = simulation()
    actor = world.actor
    answer: list[tuple[bool, Any]] = []

    def arrive() -> None:
        answer.append(_applied(apply))
        if fault is Fault.KILL_AFTER:
            world.kill(actor.process)
        elif fault is Fault.FREEZE_AFTER:
            world.freeze(actor.process, time)
        if fault is Fault.LOST:
            answer[:] = [(False, ReadTimeoutError(endpoint_url="s3"))]
            world.wake(actor, max(back, _TIMEOUT - there))
        elif not actor.process.dead:
            world.wake(actor, back)

    world.at(there, arrive)
    world.wait()
    return answer[0]


def _applied(apply: Callable[[], Any]) -> tuple[bool, Any]:
    try:
        return True, apply()
    except ClientError as error:
        return False, error


def _latency(process: Process) -> int:
    """Return a time on the way: mostly some milliseconds, seldom half a second."""
    return int(_FASTEST * process.slow * 100 ** (process.random.random() ** 2))
